// How a range of gradients is summed over the ranks, in the numbers that the wire carries.
//
//   f32        as they are: exact up to the order of the sum
//   bf16       rounded to nearest even, half the bytes. Partial sums are rounded too, by the
//              collective, which no sender could make good: nothing is fed back.
//   topk:S     of every range the S x count values of largest magnitude, with their places
//   1bit       of every value its sign, and of every block of 256 the mean of its values of
//              either sign: 40 bytes instead of 1,024
//
// topk and 1bit feed back their error: what a rank could not send of a range it adds the next time
// the same range comes, so that nothing is lost, only late. A rank alone loses and feeds back as
// one of several does: what a format does to the training shows on one worker too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sync/communicator.h"

namespace convoy {

// One object per rank, used by the task that owns the transport. All ranks of the communicator make
// the same calls in the same order.
class WireFormat {
 public:
  virtual ~WireFormat() = default;

  // Blocks. In place: afterwards every rank has the same bytes in `values`, the sum of what all of
  // them had. `begin` is the place of the range in the gradient arena. Where messages have no
  // content the sizes on the wire are right and `values` is not touched.
  virtual void sum(Communicator& communicator, std::size_t begin, std::span<float> values) = 0;

  // What a rank sends for a range of so many values: payload, by a ring, rounded up.
  virtual std::size_t wire_bytes(std::size_t count, int ranks) const = 0;

  // Places of the arena, ascending, that are zero on every rank and must be so after a sum.
  virtual void keep_zero(std::vector<std::uint32_t> places) { static_cast<void>(places); }

  // What is still to be sent, for every value of the arena; empty where nothing is fed back. To go
  // on from a checkpoint, write there what was read there.
  virtual std::span<float> residual() { return {}; }
};

// f32, bf16, topk, 1bit: for help texts.
const std::vector<std::string>& wire_formats();

// A name of wire_formats(); "topk:0.01" says the share (topk alone: 0.01). Throws ConfigError.
std::unique_ptr<WireFormat> make_wire_format(const std::string& text, std::size_t arena_size);

}  // namespace convoy
