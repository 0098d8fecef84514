// Output that comes in pieces and leaves in whole lines.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace convoy {

// Cuts a stream of bytes into whole lines.
class LineCutter {
 public:
  // A line that grows beyond this is cut.
  static constexpr std::size_t kLongestLine = 16 << 20;

  // Takes the next bytes; gives all lines that are whole by now, each with its end.
  std::string take(std::string_view bytes);
  // The last line, which has no end; empty when there is none.
  std::string rest() { return std::exchange(open_, {}); }

 private:
  std::string open_;
};

// Writes to a file descriptor without ever blocking for long: what the reader does not take yet is
// kept.
class Sink {
 public:
  explicit Sink(int fd) : fd_(fd) {}

  void add(std::string_view bytes);
  bool pending() const { return done_ < queue_.size(); }
  bool full() const { return queue_.size() - done_ > (1 << 20); }  // time to stop reading
  int fd() const { return fd_; }
  // Writes a piece after poll has said that there is room. A failure is kept and the rest dropped.
  void pump();
  // Writes all; blocks for at most `timeout_s`.
  void flush(double timeout_s);
  int error() const { return error_; }  // errno of the first failed write; 0: none

 private:
  int fd_;
  std::string queue_;
  std::size_t done_ = 0;  // bytes of queue_ that are written
  int error_ = 0;
};

// Lines of several ranks in one stream, each with its rank before it if so wished. An unfinished
// last line stays as it is, unless another line follows.
class TaggedOutput {
 public:
  TaggedOutput(int fd, bool tagged) : sink_(fd), tagged_(tagged) {}
  void add(int rank, std::string_view lines);
  Sink& sink() { return sink_; }

 private:
  Sink sink_;
  bool tagged_;
  bool open_line_ = false;
};

}  // namespace convoy
