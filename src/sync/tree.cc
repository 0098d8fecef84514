// A binary tree: sums go up to the root, the result comes down, both in segments.
//
// Place v (counted from the root) has its parent at (v-1)/2 and its children at 2v+1 and 2v+2. In
// turn t a rank takes segment t from its children, adds it and passes the sum up; and takes segment
// t - lag of the result from its parent and passes it down. The root has no lag; further down it
// grows, as it takes a segment longer to go up and come back. So both directions are busy at the
// same time, and yet every wait is for something that earlier turns of others have sent.
#include <algorithm>
#include <optional>

#include "sync/algorithms.h"

namespace convoy {
namespace {

struct Direction {
  bool up = false;
  bool down = false;
};

class Tree {
 public:
  Tree(const Operation& operation, int root, std::span<std::byte> buffer, Direction direction)
      : operation_(operation),
        buffer_(buffer),
        length_(operation.segment_length()),
        segments_((buffer.size() + length_ - 1) / length_),
        direction_(direction) {
    const int n = operation.size();
    const int place = (operation.index() - root + n) % n;
    const auto at = [&](int other) { return operation.peer((other + root) % n); };
    is_root_ = place == 0;
    if (!is_root_) {
      if (direction.up) to_parent_.emplace(operation, at((place - 1) / 2));
      if (direction.down) from_parent_.emplace(operation, at((place - 1) / 2));
    }
    for (int child = 2 * place + 1; child <= std::min(2 * place + 2, n - 1); ++child) {
      const int number = children_++;
      if (direction.up) from_child_[number].emplace(operation, at(child));
      if (direction.down) to_child_[number].emplace(operation, at(child));
    }
    int depth = 0;
    for (int above = place; above > 0; above = (above - 1) / 2) ++depth;
    lag_ = is_root_ || !direction.up ? 0 : kAhead + 2 * std::size_t(depth);
    room_length_ = std::min(length_, buffer.size());
    if (direction.up) room_ = operation.scratch.room(2 * kAhead * room_length_);
  }

  void run() {
    for (std::size_t number = 0; number < std::min(kAhead, segments_); ++number) {
      if (direction_.up)
        for (int child = 0; child < children_; ++child) post_from_child(child, number);
      // Where the sum goes up first, the result must not come before it has left.
      if (from_parent_ && !direction_.up) from_parent_->recv(segment(number));
    }
    for (std::size_t turn = 0; turn < segments_ + lag_; ++turn) {
      if (direction_.up && turn < segments_) pass_up(turn);
      if (turn == lag_ && from_parent_ && direction_.up)
        for (std::size_t number = 0; number < std::min(kAhead, segments_); ++number)
          post_from_parent(number);
      if (direction_.down && turn >= lag_) pass_down(turn - lag_);
    }
    if (to_parent_) to_parent_->finish_all();
    for (int child = 0; child < children_; ++child)
      if (to_child_[child]) to_child_[child]->finish_all();
  }

 private:
  std::span<std::byte> segment(std::size_t number) const {
    const std::size_t begin = number * length_;
    return buffer_.subspan(begin, std::min(length_, buffer_.size() - begin));
  }
  std::span<std::byte> room(int child, std::size_t number) const {
    const std::size_t slot = std::size_t(child) * kAhead + number % kAhead;
    return room_.subspan(slot * room_length_, segment(number).size());
  }
  void post_from_child(int child, std::size_t number) {
    from_child_[child]->recv(room(child, number));
  }
  void post_from_parent(std::size_t number) {
    while (to_parent_ && raised_ - to_parent_->open() <= number) to_parent_->finish_oldest();
    from_parent_->recv(segment(number));
  }
  static void send(Flight& flight, std::span<const std::byte> bytes) {
    if (flight.open() == 2 * kAhead) flight.finish_oldest();
    flight.send(bytes);
  }

  void pass_up(std::size_t number) {
    for (int child = 0; child < children_; ++child) {
      from_child_[child]->finish_oldest();
      operation_.add(segment(number), room(child, number));
      if (number + kAhead < segments_) post_from_child(child, number + kAhead);
    }
    if (is_root_) {
      operation_.apply_factor(segment(number));
    } else {
      send(*to_parent_, segment(number));
      ++raised_;
    }
  }

  void pass_down(std::size_t number) {
    if (from_parent_) {
      from_parent_->finish_oldest();
      if (number + kAhead < segments_) post_from_parent(number + kAhead);
    }
    for (int child = 0; child < children_; ++child) send(*to_child_[child], segment(number));
  }

  const Operation& operation_;
  const std::span<std::byte> buffer_;
  const std::size_t length_;
  const std::size_t segments_;
  const Direction direction_;
  std::span<std::byte> room_;
  std::size_t room_length_ = 0;
  std::size_t lag_ = 0;
  std::size_t raised_ = 0;  // segments sent to the parent
  int children_ = 0;
  bool is_root_ = false;
  std::optional<Flight> to_parent_, from_parent_, from_child_[2], to_child_[2];
};

}  // namespace

void tree(const Operation& operation, std::span<std::byte> buffer) {
  Tree(operation, 0, buffer, {.up = true, .down = true}).run();
}

void tree_reduce(const Operation& operation, int root, std::span<std::byte> buffer) {
  Tree(operation, root, buffer, {.up = true}).run();
}

void tree_broadcast(const Operation& operation, int root, std::span<std::byte> buffer) {
  Tree(operation, root, buffer, {.down = true}).run();
}

}  // namespace convoy
