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

// How the buffer is cut.
struct Cut {
  Cut(const Operation& operation, std::span<std::byte> whole)
      : buffer(whole), width(operation.width()), length(operation.segment_length()) {
    const std::size_t count = whole.size() / width, n = std::size_t(operation.size());
    chunks = operation.size();
    base = count / n;
    extra = count % n;
    longest = part_of(count, chunks, 0).count * width;
    segments = (longest + length - 1) / length;
  }

  std::span<std::byte> buffer;
  std::size_t width;
  std::size_t length;  // of a segment, in bytes
  int chunks;
  std::size_t base, extra;  // elements of a chunk; so many chunks have one more
  std::size_t longest;      // chunk, in bytes
  std::size_t segments;     // of a chunk; the last ones may be empty
};

// Goes through the messages of one direction. Small and without division: thousands of simulated
// ranks each have two, and move them on once per message.
class Cursor {
 public:
  Cursor(const Cut& cut, int step, int chunk) : step_(step), chunk_(chunk) { enter_chunk(cut); }

  int step() const { return step_; }
  std::span<std::byte> segment(const Cut& cut) const {
    return cut.buffer.subspan(begin_, std::min(cut.length, end_ - begin_));
  }
  void advance(const Cut& cut) {
    begin_ = std::min(begin_ + cut.length, end_);
    if (++segment_ < cut.segments) return;
    segment_ = 0;
    ++step_;
    chunk_ = chunk_ == 0 ? cut.chunks - 1 : chunk_ - 1;
    enter_chunk(cut);
  }

 private:
  void enter_chunk(const Cut& cut) {
    const std::size_t chunk = std::size_t(chunk_);
    begin_ = (chunk * cut.base + std::min(chunk, cut.extra)) * cut.width;
    end_ = begin_ + (cut.base + (chunk < cut.extra ? 1 : 0)) * cut.width;
  }

  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t segment_ = 0;
  int step_;
  int chunk_;
};

// Steps [first, last) of the ring.
void run_steps(const Operation& operation, std::span<std::byte> buffer, int first, int last) {
  const Cut cut(operation, buffer);
  if (cut.longest == 0) return;
  const int n = operation.size(), i = operation.index();
  const std::size_t total = std::size_t(last - first) * cut.segments;
  const std::size_t apart =
      std::size_t(n - 1) * cut.segments;  // from a segment's sum to its result
  const std::size_t window = std::min({kAhead, cut.segments + 1, apart});
  const std::size_t lead = std::min(window, cut.segments);
  const std::size_t room_length = std::min(cut.length, cut.longest);
  const bool real = operation.transport.carries_bytes();
  const std::span<std::byte> room = operation.scratch.room(window * room_length);

  const auto chunk_of_step = [&](int step) { return ((i - step) % n + n) % n; };
  Cursor outgoing(cut, first, chunk_of_step(first + 1));
  Cursor posting(cut, first, chunk_of_step(first + 2));
  Cursor arriving = posting;
  Flight sends(operation, operation.peer((i + 1) % n));
  Flight receives(operation, operation.peer((i + n - 1) % n));
  std::size_t posted = 0, sent = 0, slot_posted = 0, slot_arrived = 0;

  const auto post = [&] {
    const std::span<std::byte> place = posting.segment(cut);
    if (posting.step() < n - 1) {
      receives.recv(room.subspan(slot_posted * room_length, place.size()));
      slot_posted = slot_posted + 1 == window ? 0 : slot_posted + 1;
    } else {
      // The result arrives where the own part of the sum was sent from.
      while (first == 0 && sent - sends.open() + apart <= posted) sends.finish_oldest();
      receives.recv(place);
    }
    posting.advance(cut);
    ++posted;
  };
  const auto send = [&] {
    // What was sent two messages before the last arrived should have left; if not, the right
    // neighbour is slower, and waiting for it costs nothing.
    if (sends.open() == lead + 2) sends.finish_oldest();
    sends.send(outgoing.segment(cut));
    outgoing.advance(cut);
    ++sent;
  };
  const auto take = [&] {
    if (arriving.step() < n - 1) {
      const std::span<std::byte> segment = arriving.segment(cut);
      operation.add(segment, room.subspan(slot_arrived * room_length, segment.size()));
      slot_arrived = slot_arrived + 1 == window ? 0 : slot_arrived + 1;
      if (arriving.step() == n - 2) operation.apply_factor(segment);
    }
    arriving.advance(cut);
  };

  while (posted < std::min(window, total)) post();
  while (sent < std::min(lead, total)) send();
  for (std::size_t arrived = 0; arrived < total; ++arrived) {
    receives.finish_oldest();
    if (real) take();
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
