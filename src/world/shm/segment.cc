#include "world/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace convoy::shm {
namespace {

constexpr std::uint64_t kMagic = 0x6d68732d796e6f63;  // "cony-shm"
// Changes with every change of layout.h or of this file's order of parts.
constexpr std::uint32_t kLayoutVersion = 1;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMostRegionBytes = std::size_t{32}
                                         << 40;  // of all ranks: addresses have 47 bits

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::size_t default_region_bytes(int ranks) {
  const std::size_t memory = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * kPage;
  return std::min(memory, kMostRegionBytes / ranks);
}

[[noreturn]] void refuse(const char* what) {
  throw TransportError(fmt::format("shared memory: {}: {} (see ulimit -v and ulimit -f)", what,
                                   std::strerror(errno)));
}

}  // namespace

struct Segment::Places {
  std::size_t barrier, slots, pulses, rings, ring_data, regions, end;
  bool operator==(const Places&) const = default;
};

struct Segment::Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::int32_t ranks;
  std::uint64_t ring_bytes;
  std::uint64_t region_bytes;
  Places places;

  static Header of(const SegmentOptions& options) {
    CHECK(options.ranks >= 1 && options.ranks <= kMostRanks, "{} ranks in a segment",
          options.ranks);
    CHECK(std::has_single_bit(options.ring_bytes) && options.ring_bytes >= kPage,
          "rings of {} bytes", options.ring_bytes);
    const std::size_t ranks = options.ranks;
    const std::size_t region =
        round_up(options.region_bytes ? options.region_bytes : default_region_bytes(options.ranks),
                 kHugePage);
    Places at;
    at.barrier = kPage;
    at.slots = at.barrier + sizeof(Barrier);
    at.pulses = at.slots + ranks * sizeof(Slot);
    at.rings = round_up(at.pulses + ranks * ranks * sizeof(Pulse), kPage);
    at.ring_data = round_up(at.rings + ranks * ranks * sizeof(Ring), kPage);
    at.regions = round_up(at.ring_data + ranks * ranks * options.ring_bytes, kHugePage);
    at.end = at.regions + ranks * region;
    return {.magic = kMagic,
            .version = kLayoutVersion,
            .ranks = options.ranks,
            .ring_bytes = options.ring_bytes,
            .region_bytes = region,
            .places = at};
  }
};

Segment::Segment(int fd, std::byte* base, std::size_t size) : fd_(fd), base_(base), size_(size) {}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      base_(std::exchange(other.base_, nullptr)),
      size_(other.size_) {}

Segment::~Segment() {
  if (base_) munmap(base_, size_);
  if (fd_ >= 0) close(fd_);
}

namespace {

// Null where the system refuses.
std::byte* map_segment(int fd, std::size_t size) {
  void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) return nullptr;
  madvise(base, size, MADV_DONTDUMP);  // a core file must not be as large as the machine
  return static_cast<std::byte*>(base);
}

}  // namespace

Segment Segment::create(const SegmentOptions& options) {
  const Header header = Header::of(options);
  const int fd = memfd_create("convoy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) refuse("cannot be created");
  Segment segment(fd, nullptr, header.places.end);
  if (ftruncate(fd, static_cast<off_t>(segment.size_)) != 0) refuse("cannot be made large enough");
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  segment.base_ = map_segment(fd, segment.size_);
  if (!segment.base_) refuse("cannot be mapped");
  segment.header() = header;
  return segment;
}

Segment Segment::attach(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) {
    throw TransportError(fmt::format(
        "shared memory: descriptor {} is not open; start the ranks with convoy launch", fd));
  }
  const std::size_t size = static_cast<std::size_t>(status.st_size);
  Header found{};
  if (pread(fd, &found, sizeof found, 0) != sizeof found || found.magic != kMagic) {
    throw TransportError(fmt::format(
        "shared memory: descriptor {} holds something else; start the ranks with convoy launch",
        fd));
  }
  const bool sane = found.ranks >= 1 && found.ranks <= kMostRanks &&
                    std::has_single_bit(found.ring_bytes) && found.ring_bytes >= kPage &&
                    found.ring_bytes <= (std::size_t{1} << 32) && found.region_bytes > 0 &&
                    found.region_bytes <= kMostRegionBytes;
  const SegmentOptions options{
      .ranks = found.ranks, .ring_bytes = found.ring_bytes, .region_bytes = found.region_bytes};
  if (!sane || found.version != kLayoutVersion || found.places != Header::of(options).places ||
      found.places.end != size) {
    throw TransportError(
        fmt::format("shared memory: descriptor {} was laid out by another build (version {}, here "
                    "{}); launcher and "
                    "ranks must be the same program",
                    fd, found.version, kLayoutVersion));
  }
  Segment segment(fd, map_segment(fd, size), size);
  if (!segment.base_) {
    segment.fd_ = -1;  // stays the caller's
    refuse("cannot be mapped");
  }
  return segment;
}

Segment::Header& Segment::header() { return *reinterpret_cast<Header*>(base_); }
const Segment::Header& Segment::header() const { return *reinterpret_cast<const Header*>(base_); }

int Segment::ranks() const { return header().ranks; }

Barrier& Segment::barrier() { return *reinterpret_cast<Barrier*>(base_ + header().places.barrier); }

Slot& Segment::slot(int index) {
  return reinterpret_cast<Slot*>(base_ + header().places.slots)[index];
}

Pulse& Segment::pulse(int owner, int watcher) {
  return reinterpret_cast<Pulse*>(base_ + header().places.pulses)[owner * ranks() + watcher];
}

Ring& Segment::ring(int from, int to) {
  return reinterpret_cast<Ring*>(base_ + header().places.rings)[from * ranks() + to];
}

std::span<std::byte> Segment::ring_bytes(int from, int to) {
  const std::size_t bytes = header().ring_bytes;
  return {base_ + header().places.ring_data + (from * ranks() + to) * bytes, bytes};
}

std::span<std::byte> Segment::region(int index) {
  const std::size_t bytes = header().region_bytes;
  return {base_ + header().places.regions + index * bytes, bytes};
}

}  // namespace convoy::shm
