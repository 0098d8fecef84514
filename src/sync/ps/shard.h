// The numbers that a server keeps, and how gradients move them. Gradients are read where they were
// received: a pass over a slice decodes them and adds those of several workers in cache, block by
// block, and moves the weights.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/float_arena.h"
#include "base/part.h"
#include "optim/optimizer.h"
#include "sync/ps/job.h"
#include "sync/wire_code.h"

namespace convoy {

class ServerShard {
 public:
  ServerShard(const ServerJob& job, int server);

  std::span<float> values() { return values_.span(); }
  const WireCode* code() const { return code_.get(); }  // null: gradients are floats
  std::vector<NamedArena> state() { return optimizer_->state(); }
  std::span<float> slice_values(const ServerSlice& slice) {
    return values_.span().subspan(slice.offset, slice.count());
  }

  struct Pace {
    float rate = 0;
    std::int64_t update = 1;
  };
  struct Gradient {
    std::span<const std::byte> message;  // floats, or what the job's wire format makes of them
    float factor = 1;
  };
  // One update by the sum of gradients, times their factors, in this order.
  void update(const ServerSlice& slice, std::span<const Gradient> gradients, const Pace& pace);
  // By g + factor * g * g * (now - then), for a gradient whose weights were `then`.
  void update_compensated(const ServerSlice& slice, std::span<const std::byte> gradient,
                          std::span<const float> then, float factor, const Pace& pace);

  // What one worker brings to an exact sum: for every block of kExactBlock elements of the arena
  // that the slice touches the largest magnitude (bits of a float) over its shards, whole blocks
  // included, then its shards of the slice, one after the other.
  struct ExactGradient {
    std::span<const std::uint32_t> largest;
    std::span<const float> shards;
  };
  // The same bits as all_reduce_exact over the whole arena. What is extra becomes the sum itself.
  void update_exact(const ServerSlice& slice, std::span<const ExactGradient> gradients,
                    const Pace& pace);

 private:
  struct Piece {  // of a parameter that is trained, in the shard
    std::size_t begin, end;
  };
  std::span<const float> sum(std::span<const Gradient> gradients, std::size_t at,
                             std::span<float> room) const;
  template <typename Combine>
  void move(const ServerSlice& slice, const Pace& pace, const Combine& combine);
  std::span<const Piece> pieces_of(const ServerSlice& slice) const;

  const std::size_t arena_;
  std::unique_ptr<WireCode> code_;
  FloatArena values_;
  FloatArena gradients_;  // of rules that need a whole gradient first; else empty
  std::vector<Piece> pieces_;
  std::unique_ptr<Optimizer> optimizer_;
};

// Blocks of kExactBlock elements that a range of the arena touches.
Range exact_blocks(const ServerSlice& slice);

}  // namespace convoy
