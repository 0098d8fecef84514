// Why a job failed, in one line. The ranks that notice a loss may end before the one that caused it
// is seen to be gone, so causes have an order: a rank killed by somebody else, then a rank that
// failed by itself, then a rank that others miss.
//
// A job may be able to do without some of its ranks: their end is a loss that is told, and a cause
// only where a rank that is needed fails for it.
#pragma once

#include <map>
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
  // The first `needed` ranks are those that the job cannot do without; 0: all.
  Verdict(std::vector<std::string> hosts, std::vector<int> host_of, int needed = 0)
      : hosts_(std::move(hosts)),
        host_of_(std::move(host_of)),
        pids_(host_of_.size(), 0),
        needed_(needed > 0 ? needed : int(host_of_.size())) {}

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
  bool needs(int rank) const { return rank < needed_; }
  // Every rank that is needed has ended well.
  bool done() const;
  // Losses that the job can do without, a line each, once.
  bool has_losses() const { return !losses_.empty(); }
  std::vector<std::string> take_losses() { return std::exchange(losses_, {}); }
  LaunchResult result() const;

 private:
  enum class Cause { none, missed, exited, killed, failed };  // the later wins

  struct Finding {
    Cause cause = Cause::none;
    LaunchResult result = {};
  };
  void settle(const Finding& finding);
  Finding finding_of(int rank, const End& end) const;
  void do_without(int rank, const std::string& why);
  std::string name(int rank) const;  // "rank 2 (pid 123, host b)"

  std::vector<std::string> hosts_;
  std::vector<int> host_of_;
  std::vector<int> pids_;
  std::set<int> sent_;
  std::vector<std::pair<int, std::string>> missed_;  // by lost(), in the order heard
  std::set<int> well_;                               // ended well
  int needed_;
  std::map<int, Finding> spared_;  // failed ranks that are not needed
  std::set<int> blamed_;           // those whose loss ended one that is
  std::set<int> told_;             // those in losses_, now or before
  std::vector<std::string> losses_;
  Cause cause_ = Cause::none;
  LaunchResult result_;
};

}  // namespace convoy
