// The ring, pipelined.
//
// The ranks of the group stand in a circle and each sends to its right neighbour only. In step s
// rank i sends chunk i-s-1 and receives chunk i-s-2 (modulo N). In the first N-1 steps what comes
// is added, so that after them rank i has all of chunk i, its own; in the other N-1 steps finished
// chunks go round and replace what is there. Each rank sends 2(N-1)/N of the buffer, which is the
// least possible.
//
// Every chunk travels in K segments, and the steps are not kept apart: message m is segment m mod K
// of step m div K, and may leave as soon as message m-K has come and was added. Receives are posted
// `window` messages ahead, and nobody sends more than that ahead of what it has received; so a send
// that is waited for always finds its receive, whatever the transport buffers.
#include <algorithm>

#include "sync/algorithms.h"

namespace convoy {
namespace {

// Goes through the messages of one direction. No division: it is moved on once per message.
class Cursor {
 public:
  Cursor(const Operation& operation, std::span<std::byte> buffer, std::size_t segments, int step,
         int chunk)
      : buffer_(buffer),
        width_(operation.width()),
        length_(operation.segment_length()),
        segments_(segments),
        size_(operation.size()),
        step_(step),
        chunk_(chunk) {
    base_ = buffer.size() / width_ / std::size_t(size_);
    extra_ = buffer.size() / width_ % std::size_t(size_);
    enter_chunk();
  }

  int step() const { return step_; }
  std::span<std::byte> segment() const {
    return buffer_.subspan(begin_, std::min(length_, end_ - begin_));
  }
  void advance() {
    begin_ = std::min(begin_ + length_, end_);
    if (++segment_ < segments_) return;
    segment_ = 0;
    ++step_;
    chunk_ = chunk_ == 0 ? size_ - 1 : chunk_ - 1;
    enter_chunk();
  }

 private:
  void enter_chunk() {
    const std::size_t chunk = std::size_t(chunk_);
    begin_ = (chunk * base_ + std::min(chunk, extra_)) * width_;
    end_ = begin_ + (base_ + (chunk < extra_ ? 1 : 0)) * width_;
  }

  const std::span<std::byte> buffer_;
  const std::size_t width_;
  const std::size_t length_;
  const std::size_t segments_;
  const int size_;
  std::size_t base_ = 0;
  std::size_t extra_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t segment_ = 0;
  int step_;
  int chunk_;
};

// Steps [first, last) of the ring.
void run_steps(const Operation& operation, std::span<std::byte> buffer, int first, int last) {
  const int n = operation.size(), i = operation.index();
  const std::size_t length = operation.segment_length();
  const std::size_t chunk = part_of(buffer.size() / operation.width(), n, 0).count *
                            operation.width();  // the first is the longest
  if (chunk == 0) return;
  const std::size_t segments = (chunk + length - 1) / length;
  const std::size_t total = std::size_t(last - first) * segments;
  const std::size_t apart = std::size_t(n - 1) * segments;  // from a segment's sum to its result
  const std::size_t window = std::min(kAhead, apart);
  const std::size_t room_length = std::min(length, chunk);
  const std::span<std::byte> room = operation.scratch.room(window * room_length);

  const auto chunk_of_step = [&](int step) { return ((i - step) % n + n) % n; };
  Cursor outgoing(operation, buffer, segments, first, chunk_of_step(first + 1));
  Cursor posting(operation, buffer, segments, first, chunk_of_step(first + 2));
  Cursor arriving = posting;
  Flight sends(operation, operation.peer((i + 1) % n));
  Flight receives(operation, operation.peer((i + n - 1) % n));
  std::size_t posted = 0, sent = 0, slot_posted = 0, slot_arrived = 0;

  const auto post = [&] {
    const std::span<std::byte> place = posting.segment();
    if (posting.step() < n - 1) {
      receives.recv(room.subspan(slot_posted * room_length, place.size()));
      slot_posted = slot_posted + 1 == window ? 0 : slot_posted + 1;
    } else {
      // The result arrives where the own part of the sum was sent from.
      while (first == 0 && sent - sends.open() + apart <= posted) sends.finish_oldest();
      receives.recv(place);
    }
    posting.advance();
    ++posted;
  };
  const auto send = [&] {
    if (sends.open() == 2 * kAhead) sends.finish_oldest();
    sends.send(outgoing.segment());
    outgoing.advance();
    ++sent;
  };

  while (posted < std::min(window, total)) post();
  while (sent < std::min({window, segments, total})) send();
  const std::size_t lead = std::min(window, segments);
  for (std::size_t arrived = 0; arrived < total; ++arrived) {
    receives.finish_oldest();
    if (arriving.step() < n - 1) {
      const std::span<std::byte> segment = arriving.segment();
      operation.add(segment, room.subspan(slot_arrived * room_length, segment.size()));
      slot_arrived = slot_arrived + 1 == window ? 0 : slot_arrived + 1;
      if (arriving.step() == n - 2) operation.apply_factor(segment);
    }
    arriving.advance();
    if (sent < std::min(arrived + 1 + lead, total)) send();
    if (posted < total) post();
  }
  sends.finish_all();
}

}  // namespace

void ring(const Operation& operation, std::span<std::byte> buffer) {
  const int n = operation.size();
  if (n == 1)
    operation.apply_factor(buffer);
  else
    run_steps(operation, buffer, 0, 2 * (n - 1));
}

void ring_reduce_scatter(const Operation& operation, std::span<std::byte> buffer) {
  const int n = operation.size();
  if (n == 1)
    operation.apply_factor(buffer);
  else
    run_steps(operation, buffer, 0, n - 1);
}

void ring_all_gather(const Operation& operation, std::span<std::byte> buffer) {
  const int n = operation.size();
  if (n > 1) run_steps(operation, buffer, n - 1, 2 * (n - 1));
}

}  // namespace convoy
