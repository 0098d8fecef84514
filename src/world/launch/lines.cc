#include "world/launch/lines.h"

#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"

namespace convoy {

std::string LineCutter::take(std::string_view bytes) {
  const std::size_t end = bytes.rfind('\n');
  std::string whole;
  if (end != std::string_view::npos) {
    whole = std::exchange(open_, {});
    whole += bytes.substr(0, end + 1);
    bytes.remove_prefix(end + 1);
  }
  open_ += bytes;
  if (open_.size() > kLongestLine) {
    whole += open_;
    open_.clear();
  }
  return whole;
}

void Sink::add(std::string_view bytes) {
  if (error_ != 0) return;
  if (done_ > queue_.size() / 2) {
    queue_.erase(0, done_);
    done_ = 0;
  }
  queue_ += bytes;
}

void Sink::pump() {
  if (!pending()) return;
  // A pipe that has room takes this much at once.
  const std::size_t piece = std::min<std::size_t>(PIPE_BUF, queue_.size() - done_);
  const ssize_t written = ::write(fd_, queue_.data() + done_, piece);
  if (written >= 0) {
    done_ += std::size_t(written);
  } else if (errno != EINTR && errno != EAGAIN) {
    error_ = errno;
    queue_.clear();
    done_ = 0;
  }
}

void Sink::flush(double timeout_s) {
  const double end_s = now_s() + timeout_s;
  while (pending()) {
    const double left_s = end_s - now_s();
    if (left_s <= 0) return;
    pollfd room{fd_, POLLOUT, 0};
    if (::poll(&room, 1, int(std::min(left_s, 3600.0) * 1000) + 1) > 0) pump();
  }
}

void TaggedOutput::add(int rank, std::string_view lines) {
  while (!lines.empty()) {
    if (open_line_) sink_.add("\n");
    const std::size_t end = tagged_ ? lines.find('\n') : lines.rfind('\n');
    const bool whole = end != std::string_view::npos;
    const std::string_view piece = lines.substr(0, whole ? end + 1 : lines.size());
    if (tagged_) sink_.add(fmt::format("[{}] ", rank));
    sink_.add(piece);
    open_line_ = piece.back() != '\n';
    lines.remove_prefix(piece.size());
  }
}

}  // namespace convoy
