// Who keeps the slices of a server that is lost: the next by number, round about, that is not.
// Every rank has its own knowledge of losses, and comes to the same answers as that spreads.
#pragma once

#include <cstddef>
#include <vector>

namespace convoy {

class Succession {
 public:
  explicit Succession(int servers) : lost_(std::size_t(servers), 0) {}

  bool lost(int server) const { return lost_[std::size_t(server)]; }
  void lose(int server) { lost_[std::size_t(server)] = 1; }
  // Of the slices that a server has at first; -1: nobody.
  int holder(int server) const { return first(server, 0); }
  // Who would take over from a server; -1: nobody.
  int heir(int server) const { return first(server, 1); }

 private:
  int first(int server, int from) const {
    const int count = int(lost_.size());
    for (int i = from; i < count; ++i)
      if (!lost((server + i) % count)) return (server + i) % count;
    return -1;
  }

  std::vector<char> lost_;  // by server
};

}  // namespace convoy
