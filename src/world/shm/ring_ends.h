// The two ends of a ring. The writer's bytes become visible to the reader, and the reader's room to
// the writer, with publish().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "world/shm/layout.h"

namespace convoy::shm {

// The counts are stored and loaded in one order over all of them and `Slot::asleep`, so that of one
// who publishes and one who falls asleep at the same time, one sees the other.

class RingWriter {
 public:
  RingWriter(Ring& ring, std::span<std::byte> data)
      : ring_(&ring), data_(data), written_(ring.written.load()), read_(ring.read.load()) {}

  std::size_t room() const { return data_.size() - (written_ - read_); }
  // Looks how far the reader has come.
  std::size_t refresh() {
    read_ = ring_->read.load();
    return room();
  }
  // At most room().
  void write(std::span<const std::byte> bytes) {
    const std::size_t at = written_ & (data_.size() - 1);
    const std::size_t first = std::min(bytes.size(), data_.size() - at);
    if (first) std::memcpy(data_.data() + at, bytes.data(), first);
    if (bytes.size() > first) std::memcpy(data_.data(), bytes.data() + first, bytes.size() - first);
    written_ += bytes.size();
  }
  void skip(std::size_t bytes) { written_ += bytes; }
  void publish() { ring_->written.store(written_); }
  // Whether the reader is to ring when there is more room.
  void want_room(bool wanted) {
    if (wanted == wants_room_) return;
    wants_room_ = wanted;
    ring_->wants_room.store(wanted);
  }

 private:
  Ring* ring_;
  std::span<std::byte> data_;
  std::uint64_t written_;
  std::uint64_t read_;
  bool wants_room_ = false;
};

class RingReader {
 public:
  RingReader(Ring& ring, std::span<std::byte> data)
      : ring_(&ring), data_(data), written_(ring.written.load()), read_(ring.read.load()) {}

  std::size_t filled() const { return written_ - read_; }
  // Looks how far the writer has come.
  std::size_t refresh() {
    written_ = ring_->written.load();
    return filled();
  }
  // At most filled().
  void read(std::span<std::byte> bytes) {
    const std::size_t at = read_ & (data_.size() - 1);
    const std::size_t first = std::min(bytes.size(), data_.size() - at);
    if (first) std::memcpy(bytes.data(), data_.data() + at, first);
    if (bytes.size() > first) std::memcpy(bytes.data() + first, data_.data(), bytes.size() - first);
    read_ += bytes.size();
  }
  void skip(std::size_t bytes) { read_ += bytes; }
  void publish() { ring_->read.store(read_); }
  bool room_is_wanted() const { return ring_->wants_room.load() != 0; }

 private:
  Ring* ring_;
  std::span<std::byte> data_;
  std::uint64_t written_;
  std::uint64_t read_;
};

}  // namespace convoy::shm
