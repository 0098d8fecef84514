#include "train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/log.h"
#include "train/data_ledger.h"

namespace convoy {
namespace {
constexpr double kRedraw_s = 0.1;
constexpr double kLine_s = 30;  // where nobody watches
constexpr std::size_t kPlainWidth = 79;
constexpr int kBarWidth = 20;

// Of the terminal; what it does not tell is taken for the usual.
std::size_t columns() {
  winsize size = {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}
}  // namespace

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1), last_s_(now_s()) {}

Progress::~Progress() { clear(); }

void Progress::step(const ProgressState& state) {
  if (now_s() - last_s_ < (terminal_ ? kRedraw_s : kLine_s)) return;
  last_s_ = now_s();
  if (!terminal_) return line(bar_text(state, kPlainWidth));
  drawn_ = true;
  tell(stderr, fmt::format("\r\x1b[K{}", bar_text(state, columns() - 1)));
  std::fflush(stderr);
}

void Progress::line(const std::string& text) {
  clear();
  tell(stderr, text + "\n");
}

void Progress::clear() {
  if (drawn_) tell(stderr, "\r\x1b[K");
  drawn_ = false;
}

std::string bar_text(const ProgressState& state, std::size_t width) {
  const double share = state.total > 0 ? double(state.done) / double(state.total) : 0.0;
  const int filled = std::clamp(int(share * kBarWidth), 0, kBarWidth);
  const double left =
      double(state.total - state.done) + double(state.total) * (state.epochs - state.epoch);
  const std::string epoch = fmt::format("epoch {}/{}", state.epoch, state.epochs);
  const std::string bar = fmt::format(" [{}{}]", std::string(std::size_t(filled), '='),
                                      std::string(std::size_t(kBarWidth - filled), ' '));
  const std::string percent = fmt::format(" {:3.0f} %", 100 * share);
  const std::string images = fmt::format("  {}/{} images", with_commas(std::uint64_t(state.done)),
                                         with_commas(std::uint64_t(state.total)));
  const std::string rest =
      fmt::format("  {} images/s  loss {:.4f}  accuracy {:.2f} %  {} left",
                  with_commas(std::uint64_t(state.images_per_s)), state.loss, 100 * state.accuracy,
                  state.images_per_s > 0 ? duration_text(left / state.images_per_s) : "?");
  for (const std::string& text :
       {epoch + bar + percent + images + rest, epoch + bar + percent + rest})
    if (text.size() <= width) return text;
  return (epoch + percent + rest).substr(0, width);
}

std::string duration_text(double seconds) {
  const long whole = long(seconds + 0.5);
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace convoy
