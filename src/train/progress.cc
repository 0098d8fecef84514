#include "train/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "train/data_ledger.h"

namespace convoy {
namespace {
constexpr double kRedraw_s = 0.1;
constexpr int kBarWidth = 20;
}  // namespace

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::step(const ProgressState& state) {
  if (!terminal_ || now_s() - last_s_ < kRedraw_s) return;
  last_s_ = now_s();
  drawn_ = true;
  fmt::print(stderr, "\r\x1b[K{}", bar_text(state));
  std::fflush(stderr);
}

void Progress::line(const std::string& text) {
  clear();
  fmt::print(stderr, "{}\n", text);
}

void Progress::clear() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
  drawn_ = false;
}

std::string bar_text(const ProgressState& state) {
  const double share = state.total > 0 ? double(state.done) / double(state.total) : 0.0;
  const int filled = std::clamp(int(share * kBarWidth), 0, kBarWidth);
  const double left =
      double(state.total - state.done) + double(state.total) * (state.epochs - state.epoch);
  return fmt::format(
      "epoch {}/{} [{}{}] {:3.0f} %  {}/{} images  {} images/s  loss {:.4f}  accuracy {:.2f} %  {} "
      "left",
      state.epoch, state.epochs, std::string(std::size_t(filled), '='),
      std::string(std::size_t(kBarWidth - filled), ' '), 100 * share,
      with_commas(std::uint64_t(state.done)), with_commas(std::uint64_t(state.total)),
      with_commas(std::uint64_t(state.images_per_s)), state.loss, 100 * state.accuracy,
      state.images_per_s > 0 ? duration_text(left / state.images_per_s) : "?");
}

std::string duration_text(double seconds) {
  const long whole = long(seconds + 0.5);
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace convoy
