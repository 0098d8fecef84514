// The memory that the ranks of one host share: one memfd, which has no name in the file system and
// is gone with the last process that has it. The launcher makes it before it starts the ranks; they
// inherit the descriptor. It is large and sparse: only touched pages cost.
#pragma once

#include <cstddef>
#include <span>

#include "world/shm/layout.h"

namespace convoy::shm {

struct SegmentOptions {
  int ranks = 1;
  std::size_t ring_bytes = std::size_t{1} << 20;  // a power of two
  std::size_t region_bytes = 0;                   // 0: as much as this machine has memory
};

class Segment {
 public:
  static constexpr int kMostRanks = 128;

  // Throws TransportError where the system refuses. The descriptor is closed on exec until the
  // launcher says otherwise.
  static Segment create(const SegmentOptions& options);
  // Maps the segment behind `fd` and takes the descriptor over; throws TransportError if there is
  // none, or one of another build of this program.
  static Segment attach(int fd);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  int fd() const { return fd_; }
  int ranks() const;

  Barrier& barrier();
  Slot& slot(int index);
  Pulse& pulse(int owner, int watcher);
  Ring& ring(int from, int to);
  std::span<std::byte> ring_bytes(int from, int to);
  std::span<std::byte> region(int index);

 private:
  struct Header;
  struct Places;  // offsets of the parts

  Segment(int fd, std::byte* base, std::size_t size);
  Header& header();
  const Header& header() const;

  int fd_;
  std::byte* base_;
  std::size_t size_;
};

}  // namespace convoy::shm
