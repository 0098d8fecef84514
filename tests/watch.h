// Processes that a test did not start itself, known by the files in which they left their ids.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "program.h"

namespace convoy {

inline std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Takes hold of the processes whose ids are in the files pid-0, pid-1 ... of a folder.
class Watch {
 public:
  Watch(const TemporaryFolder& folder, int ranks) {
    for (int rank = 0; rank < ranks; ++rank) add(folder, "pid-" + std::to_string(rank));
  }
  ~Watch() {
    for (const int fd : fds_) ::close(fd);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  void add(const TemporaryFolder& folder, const std::string& name) {
    pids_.push_back(std::stoi(content(folder / name)));
    fds_.push_back(int(::syscall(SYS_pidfd_open, pids_.back(), 0)));
  }
  pid_t pid(int rank) const { return pids_.at(std::size_t(rank)); }
  // Waits for the end of all.
  bool all_ended() const {
    for (const int fd : fds_) {
      pollfd one{fd, POLLIN, 0};
      if (fd >= 0 && ::poll(&one, 1, 20'000) != 1) return false;
    }
    return true;
  }

 private:
  std::vector<pid_t> pids_;
  std::vector<int> fds_;
};

}  // namespace convoy
