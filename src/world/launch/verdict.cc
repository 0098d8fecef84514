#include "world/launch/verdict.h"

#include <fmt/format.h>

#include "world/launch/process.h"

namespace convoy {

std::string Verdict::name(int rank) const {
  return fmt::format("rank {} (pid {}, host {})", rank, pids_[rank], hosts_[host_of_[rank]]);
}

void Verdict::settle(Cause cause, LaunchResult result) {
  if (cause <= cause_ || decided()) return;
  cause_ = cause;
  result_ = std::move(result);
}

void Verdict::ended(int rank, const End& end) {
  if (!end.failed()) {
    well_.insert(rank);
    std::erase_if(missed_, [&](const auto& loss) { return loss.first == rank; });
    return;
  }
  if (end.signal != 0) {
    if (!sent_.contains(end.signal))
      settle(Cause::killed,
             {end.exit_code(), fmt::format("{} was killed by signal {} ({})", name(rank),
                                           end.signal, signal_name(end.signal))});
    return;
  }
  if (end.lost >= 0 && end.lost < int(pids_.size()) && end.lost != rank) {
    settle(Cause::missed, {end.code, fmt::format("{} was lost: {}", name(end.lost), end.why)});
  } else if (sent_.empty()) {
    const std::string why = end.why.empty() ? "" : ": " + end.why;
    settle(Cause::exited,
           {end.code, fmt::format("{} ended with exit code {}{}", name(rank), end.code, why)});
  }
}

void Verdict::lost(int rank, const std::string& why) {
  if (!well_.contains(rank)) missed_.emplace_back(rank, why);
}

LaunchResult Verdict::result() const {
  if (cause_ != Cause::none || missed_.empty()) return result_;
  const auto& [rank, why] = missed_.front();
  return {1, fmt::format("{} was lost: {}", name(rank), why)};
}

void Verdict::failed(const std::string& why, int code) { settle(Cause::failed, {code, why}); }

}  // namespace convoy
