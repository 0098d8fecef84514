// Rooms of one size, where numbers are received or wait to be sent; used again when they are free.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace convoy {

using Room = std::shared_ptr<std::vector<float>>;

class Rooms {
 public:
  explicit Rooms(std::size_t floats) : floats_(floats) {}

  // Of what was in it before, or zeros. Comes back when nobody has it any more, in the same task.
  Room take() {
    std::unique_ptr<std::vector<float>> room;
    if (free_->empty()) {
      room = std::make_unique<std::vector<float>>(floats_);
    } else {
      room = std::move(free_->back());
      free_->pop_back();
    }
    return {room.release(), [free = free_](std::vector<float>* used) { free->emplace_back(used); }};
  }

 private:
  using Free = std::vector<std::unique_ptr<std::vector<float>>>;
  std::size_t floats_;
  std::shared_ptr<Free> free_ = std::make_shared<Free>();
};

}  // namespace convoy
