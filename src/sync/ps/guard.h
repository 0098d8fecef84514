// Watches the loss of asynchronous training. Where it diverges, or does not fall at all, servers go
// back to the last good weights and take a stricter policy: async, then ssp, then sync.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace convoy {

class LossGuard {
 public:
  LossGuard(bool on, std::string policy, int workers);

  struct Move {
    enum class Kind { keep, go_back } kind;
    std::string policy;  // go_back: from now on
    std::string reason;
  };
  // The mean loss of a part of a batch, in the order in which they are done. A loss that is no
  // number diverges.
  std::optional<Move> see(double loss);
  const std::string& policy() const { return policy_; }

 private:
  std::optional<Move> stricter(const std::string& reason);

  const bool on_;
  std::string policy_;
  const int workers_;
  std::int64_t seen_ = 0;     // since the last move
  std::int64_t ignored_ = 0;  // of the losses to come
  double smooth_ = 0;
  double first_ = 0;   // smoothed, at the beginning
  double lowest_ = 0;  // smoothed, of the weights that are kept
  bool fallen_ = false;
};

}  // namespace convoy
