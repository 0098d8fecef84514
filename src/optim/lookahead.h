// Lookahead (Zhang et al. 2019): every few updates the weights are drawn back to a slow average of
// themselves and go on from there. How much of the average is kept grows with the cube of the time
// (Jordan 2024): training is free at first and ends in the mean of many steps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "optim/optimizer.h"

namespace convoy {

struct LookaheadOptions {
  int every = 0;             // updates; 0: none of it
  double keep = 0;           // share of the average that is kept per update, in the end
  std::int64_t updates = 0;  // of the whole training
};

// "EVERY:KEEP", as 5:0.95; an empty text is none of it. Throws ConfigError that begins with
// `where`. The updates in all are left to be filled in.
LookaheadOptions parse_lookahead(std::string_view text, std::string_view where);

// `optimizer` with that on top, if any, number by number: where a range is updated, it is drawn
// back. `values`, those of the optimizer, outlive this.
std::unique_ptr<Optimizer> with_lookahead(const LookaheadOptions& options,
                                          std::unique_ptr<Optimizer> optimizer,
                                          std::span<float> values);

}  // namespace convoy
