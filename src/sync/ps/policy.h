// When a pushed gradient moves the weights, and when a worker gets new ones: what makes servers
// synchronous, asynchronous or something between. A server asks its policy slice by slice.
//
//   sync              all workers' gradients of a step, averaged by samples, make one update
//   backup:K          the first N-K that were made with the present weights do; later ones are
//                     dropped
//   async             each gradient is an update; the worker goes on at once
//   ssp:S             the same, but a worker that is more than S steps ahead of the slowest waits.
//                     ssp:0 is sync: all gradients of a step are of the same weights, and make one
//                     update
//   staleness_aware   async, with the rate divided by the gradient's staleness
//   dc[:L]            async; the gradient g is corrected for what happened since its weights were
//                     pulled: g + L g g (now - then)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace convoy {

// Steps of a worker: epoch in the upper half, pushes in that epoch in the lower. Who rests in an
// epoch stands at the beginning of the next.
using Clock = std::uint64_t;
constexpr Clock clock_at(std::uint32_t epoch, std::uint32_t pushes) {
  return Clock(epoch) << 32 | pushes;
}
constexpr std::uint32_t epoch_of(Clock clock) { return std::uint32_t(clock >> 32); }

// One slice, as a policy sees it.
struct SliceView {
  std::span<const char> alive;    // by worker
  std::span<const Clock> clocks;  // by worker: of its last push, the present one included
  std::span<const int> held;      // workers whose gradients wait to be combined
};

class ConsistencyPolicy {
 public:
  virtual ~ConsistencyPolicy() = default;

  enum class Verdict { apply, hold, drop };
  // What to do with a gradient that is `staleness` updates behind.
  virtual Verdict receive(std::int64_t staleness) const = 0;
  // Whether the gradients that are held make an update now.
  virtual bool complete(const SliceView& slice) const = 0;
  // Whether a worker whose gradient was dealt with gets new weights now.
  virtual bool may_answer(const SliceView& slice, int worker) const = 0;
  // Of the rate, for a gradient that is applied alone.
  virtual double rate_factor(std::int64_t staleness) const {
    static_cast<void>(staleness);
    return 1;
  }
  // The L of delay compensation; 0: none.
  virtual double compensation() const { return 0; }
  // Whether nobody is given weights of a slice before all others have been given them too: values
  // can then be sent from where they lie.
  virtual bool in_rounds() const = 0;
};

// A policy by its text, for so many workers. Throws ConfigError.
std::unique_ptr<ConsistencyPolicy> make_policy(const std::string& text, int workers);

// Whether a step's gradients are combined: a batch then makes one update, not one for each worker.
bool combines(const std::string& text);
// Whether each worker has its own part of every batch (sync), instead of whatever is next.
bool has_fixed_parts(const std::string& text);

// For help texts.
const std::vector<std::string>& policy_names();

}  // namespace convoy
