#include "measure/tensorboard.h"

#include <unistd.h>

#include <array>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/protobuf.h"

namespace convoy {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0);
    table[i] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

// A sum of data that holds sums is weak: TensorFlow's records hide theirs.
std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8; }

template <typename Number>
std::string raw(Number value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

ProtobufWriter new_event() {
  ProtobufWriter event;
  event.real(1, unix_time_s());
  return event;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes)
    crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 255] ^ crc >> 8;
  return ~crc;
}

TensorBoardFile::TensorBoardFile(const std::filesystem::path& folder) {
  make_folder(folder);
  path_ = folder / fmt::format("events.out.tfevents.{:.0f}.convoy.{}", unix_time_s(), ::getpid());
  file_.open(path_, std::ios::binary | std::ios::app);
  ProtobufWriter event = new_event();
  event.text(3, "brain.Event:2");
  write(event.bytes());
}

void TensorBoardFile::add(std::int64_t step, const Scalars& scalars) {
  ProtobufWriter summary;
  for (const auto& [tag, value] : scalars) {
    ProtobufWriter scalar;
    scalar.text(1, tag);
    scalar.real(2, float(value));
    summary.message(1, scalar);
  }
  ProtobufWriter event = new_event();
  event.number(2, step);
  event.message(5, summary);
  write(event.bytes());
}

void TensorBoardFile::write(std::string_view event) {
  const std::string length = raw(std::uint64_t(event.size()));
  file_ << length << raw(masked(crc32c(length))) << event << raw(masked(crc32c(event)));
  file_.flush();
  if (!file_) throw DataError("{}: cannot write the TensorBoard file", path_.string());
}

}  // namespace convoy
