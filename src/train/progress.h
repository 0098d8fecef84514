// What a person sees while training runs, on standard error: a bar on a terminal; elsewhere a line
// per epoch, and one every half minute in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace convoy {

struct ProgressState {
  int epoch = 0;  // from 1
  int epochs = 0;
  std::int64_t done = 0;  // images of this epoch
  std::int64_t total = 0;
  double images_per_s = 0;
  double loss = 0;  // means of this epoch so far
  double accuracy = 0;
};

class Progress {
 public:
  Progress();
  ~Progress();
  // Redraws the bar, at most ten times a second, or writes a line, at most every half minute.
  void step(const ProgressState& state);
  // Takes the bar away and writes a line that stays.
  void line(const std::string& text);

 private:
  void clear();

  bool terminal_;
  bool drawn_ = false;
  double last_s_;
};

// As much as fits into `width` letters: a line that wraps could not be drawn over.
std::string bar_text(const ProgressState& state, std::size_t width);
// 3725 as "1:02:05", 65 as "1:05".
std::string duration_text(double seconds);

}  // namespace convoy
