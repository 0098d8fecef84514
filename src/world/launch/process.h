// Child processes of the launcher and its agents, and what they need of the system.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace convoy {

// A file descriptor that is closed with this.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};
Pipe make_pipe();  // closed on exec; throws TransportError

// A file in memory with this text, closed on exec.
Fd make_memory_file(const char* name, const std::string& text);

struct ProcessOptions {
  std::vector<std::string> command;      // the program is looked for in PATH
  std::vector<std::string> environment;  // NAME=VALUE; all of it
  std::string folder = {};               // empty: stay
  int in = -1, out = -1, err = -1;       // what becomes its standard streams; -1: /dev/null
  std::vector<int> inherited = {};       // further descriptors that it keeps, under their numbers
  std::vector<int> cores = {};           // to run on; empty: any
  int death_signal = 0;                  // that it gets when the calling thread ends
};

// Starts a process in a group of its own, with default signal handling. Throws ConfigError where
// the folder or the program cannot be had.
pid_t start_process(const ProcessOptions& options);

// Signals of this process as readable events instead of interruptions. Those that it ignores
// already (nohup) stay ignored.
class SignalQueue {
 public:
  explicit SignalQueue(std::vector<int> signals);
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;
  int fd() const { return fd_.get(); }
  std::vector<int> take();  // those that have come

 private:
  Fd fd_;
  std::vector<int> blocked_;
};

std::string signal_name(int number);  // "SIGKILL"

// Reads what is there, at most 64 KiB, into `bytes`. False at the end of the stream.
bool read_some(int fd, std::string& bytes);

// The environment of this process as NAME=VALUE.
std::vector<std::string> own_environment();

}  // namespace convoy
