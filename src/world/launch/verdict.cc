#include "world/launch/verdict.h"

#include <fmt/format.h>

#include <iterator>

#include "world/launch/process.h"

namespace convoy {
namespace {

constexpr int kRefused = 2;  // exit code of who was told something wrong: all were

}  // namespace

std::string Verdict::name(int rank) const {
  return fmt::format("rank {} (pid {}, host {})", rank, pids_[rank], hosts_[host_of_[rank]]);
}

void Verdict::settle(const Finding& finding) {
  if (finding.cause <= cause_ || decided()) return;
  cause_ = finding.cause;
  result_ = finding.result;
}

// What the end of a rank says about the job, if that needs it.
Verdict::Finding Verdict::finding_of(int rank, const End& end) const {
  if (end.signal != 0) {
    if (sent_.contains(end.signal)) return {};
    return {Cause::killed,
            {end.exit_code(), fmt::format("{} was killed by signal {} ({})", name(rank), end.signal,
                                          signal_name(end.signal))}};
  }
  if (end.lost >= 0 && end.lost < int(pids_.size()) && end.lost != rank)
    return {Cause::missed, {end.code, fmt::format("{} was lost: {}", name(end.lost), end.why)}};
  if (!sent_.empty()) return {};
  const std::string why = end.why.empty() ? "" : ": " + end.why;
  return {Cause::exited,
          {end.code, fmt::format("{} ended with exit code {}{}", name(rank), end.code, why)}};
}

void Verdict::ended(int rank, const End& end) {
  if (!end.failed()) {
    well_.insert(rank);
    std::erase_if(missed_, [&](const auto& loss) { return loss.first == rank; });
    return;
  }
  const Finding finding = finding_of(rank, end);
  if (needs(rank) || end.code == kRefused) {
    settle(finding);
    blamed_.insert(end.lost);
    if (const auto cause = spared_.find(end.lost); cause != spared_.end()) settle(cause->second);
    return;
  }
  spared_[rank] = finding;
  if (blamed_.contains(rank)) return settle(finding);
  // Who ends since a needed rank is lost says nothing new.
  if (finding.cause == Cause::none || (end.lost >= 0 && needs(end.lost))) return;
  do_without(rank, finding.cause == Cause::missed ? fmt::format("{} ended: {}", name(rank), end.why)
                                                  : finding.result.reason);
}

void Verdict::do_without(int rank, const std::string& why) {
  if (failing() || !told_.insert(rank).second) return;
  losses_.push_back(why + "; the job goes on without it");
}

void Verdict::lost(int rank, const std::string& why) {
  if (well_.contains(rank)) return;
  if (needs(rank))
    missed_.emplace_back(rank, why);
  else
    do_without(rank, fmt::format("{} was lost: {}", name(rank), why));
}

bool Verdict::done() const {
  return !failing() && std::distance(well_.begin(), well_.lower_bound(needed_)) == needed_;
}

LaunchResult Verdict::result() const {
  if (cause_ != Cause::none || missed_.empty()) return result_;
  const auto& [rank, why] = missed_.front();
  return {1, fmt::format("{} was lost: {}", name(rank), why)};
}

void Verdict::failed(const std::string& why, int code) { settle({Cause::failed, {code, why}}); }

}  // namespace convoy
