// Why a job failed, in one line. The ranks that notice a loss may end before the one that caused it
// is seen to be gone, so causes have an order: a rank killed by somebody else, then a rank that
// failed by itself, then a rank that others miss.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "world/launch/frames.h"

namespace convoy {

struct LaunchResult {
  int code = 0;
  std::string reason = {};  // empty: nothing to say
};

class Verdict {
 public:
  Verdict(std::vector<std::string> hosts, std::vector<int> host_of)
      : hosts_(std::move(hosts)), host_of_(std::move(host_of)), pids_(host_of_.size(), 0) {}

  void started(int rank, int pid) { pids_[rank] = pid; }
  // A rank ended. After sent() the signals sent are no cause, nor are exit codes.
  void ended(int rank, const End& end);
  // The others miss a rank, which may well be alive. Withdrawn should it then end well.
  void lost(int rank, const std::string& why);
  // Something other than a rank failed: that settles it.
  void failed(const std::string& why, int code);
  // The launcher told all ranks to end.
  void sent(int signal) { sent_.insert(signal); }

  bool failing() const { return cause_ != Cause::none || !missed_.empty(); }
  bool decided() const { return cause_ == Cause::failed || cause_ == Cause::killed; }
  LaunchResult result() const;

 private:
  enum class Cause { none, missed, exited, killed, failed };  // the later wins

  void settle(Cause cause, LaunchResult result);
  std::string name(int rank) const;  // "rank 2 (pid 123, host b)"

  std::vector<std::string> hosts_;
  std::vector<int> host_of_;
  std::vector<int> pids_;
  std::set<int> sent_;
  std::vector<std::pair<int, std::string>> missed_;  // by lost(), in the order heard
  std::set<int> well_;                               // ended well
  Cause cause_ = Cause::none;
  LaunchResult result_;
};

}  // namespace convoy
