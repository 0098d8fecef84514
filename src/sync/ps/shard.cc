#include "sync/ps/shard.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/part.h"
#include "kernels/parallel.h"
#include "sync/exact.h"

namespace convoy {
namespace {

constexpr std::size_t kBlock = 4096;  // floats that are combined at a time: they stay in L1
constexpr std::size_t kGrain = 1 << 15;

std::span<const float> floats_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}
std::span<const std::uint32_t> words_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint32_t*>(bytes.data()), bytes.size() / 4};
}

}  // namespace

Range exact_blocks(const ServerSlice& slice) {
  const std::size_t first = slice.begin / kExactBlock;
  return {first, (slice.end + kExactBlock - 1) / kExactBlock - first};
}

ServerShard::ServerShard(const ServerJob& job, int server)
    : arena_(job.layout.arena),
      code_(make_wire_code(job.wire)),
      values_(job.layout.shards[std::size_t(server)]),
      gradients_(job.optimizer.kind == "lars" ? values_.span().size() : 0) {
  const std::vector<Parameter> own = shard_parameters(job.layout, job.parameters, server);
  for (const Parameter& parameter : own)
    if (!parameter.spec.frozen) pieces_.push_back({parameter.begin, parameter.end});
  // Elementwise rules are handed each gradient where it lies, and never look at an arena.
  const std::span<const float> gradients =
      gradients_.span().empty() ? values_.span() : gradients_.span();
  optimizer_ = make_optimizer(job.optimizer, own, values_.span(), gradients);
}

std::span<const ServerShard::Piece> ServerShard::pieces_of(const ServerSlice& slice) const {
  const auto first = std::partition_point(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
    return piece.end <= slice.offset;
  });
  const auto last = std::partition_point(first, pieces_.end(), [&](const Piece& piece) {
    return piece.begin < slice.offset + slice.count();
  });
  return {first, last};
}

// combine(at, room) gives the gradient of the numbers from `at` on, counted from the start of the
// slice, as many as `room` has: in room, or elsewhere.
template <typename Combine>
void ServerShard::move(const ServerSlice& slice, const Pace& pace, const Combine& combine) {
  WeightUpdate* const weights = optimizer_->in_backward(pace.rate, pace.update);
  for (const Piece& piece : pieces_of(slice)) {
    parallel_for(piece.end - piece.begin, kGrain, [&](std::size_t from, std::size_t to) {
      std::array<float, kBlock> room;
      for (std::size_t at = piece.begin + from; at < piece.begin + to; at += kBlock) {
        const std::size_t count = std::min(kBlock, piece.begin + to - at);
        const std::span<const float> gradient =
            combine(at - slice.offset, std::span(room).first(count));
        if (weights)
          weights->apply(values_.span().data() + at, gradient);
        else
          std::copy(gradient.begin(), gradient.end(),
                    gradients_.span().begin() + std::ptrdiff_t(at));
      }
    });
    if (!weights) optimizer_->update(piece.begin, piece.end, pace.rate, pace.update);
  }
}

// The sum of gradients from place `at` of the slice on, as many as `room` has: in room, or where
// the only one lies.
std::span<const float> ServerShard::sum(std::span<const Gradient> gradients, std::size_t at,
                                        std::span<float> room) const {
  if (code_) {
    std::fill(room.begin(), room.end(), 0.0f);
    for (const Gradient& gradient : gradients)
      code_->add(words_of(gradient.message), at, gradient.factor, room);
    return room;
  }
  const float* const first = floats_of(gradients[0].message).data() + at;
  const float factor = gradients[0].factor;
  if (gradients.size() == 1 && factor == 1) return {first, room.size()};
  for (std::size_t i = 0; i < room.size(); ++i) room[i] = factor * first[i];
  for (const Gradient& gradient : gradients.subspan(1)) {
    const float* const next = floats_of(gradient.message).data() + at;
    const float times = gradient.factor;
    for (std::size_t i = 0; i < room.size(); ++i) room[i] += times * next[i];
  }
  return room;
}

void ServerShard::update(const ServerSlice& slice, std::span<const Gradient> gradients,
                         const Pace& pace) {
  CHECK(!gradients.empty(), "an update by no gradient");
  move(slice, pace,
       [&](std::size_t at, std::span<float> room) { return sum(gradients, at, room); });
}

void ServerShard::update_compensated(const ServerSlice& slice, std::span<const std::byte> gradient,
                                     std::span<const float> then, float factor, const Pace& pace) {
  const std::span<const float> now = slice_values(slice);
  const Gradient one{.message = gradient};
  move(slice, pace, [&](std::size_t at, std::span<float> room) {
    const std::span<const float> plain = sum({&one, 1}, at, room);
    for (std::size_t i = 0; i < room.size(); ++i) {
      const float g = plain[i];
      room[i] = g + factor * g * g * (now[at + i] - then[at + i]);
    }
    return std::span<const float>(room);
  });
}

void ServerShard::update_exact(const ServerSlice& slice, std::span<const ExactGradient> gradients,
                               const Pace& pace) {
  const std::size_t count = slice.count();
  std::vector<float> sum(count);
  std::vector<std::int64_t> units;
  const Range blocks = exact_blocks(slice);
  for (std::size_t block = 0; block < blocks.count; ++block) {
    const std::size_t begin = std::max(slice.begin, (blocks.begin + block) * kExactBlock);
    const std::size_t end = std::min(slice.end, (blocks.begin + block + 1) * kExactBlock);
    std::uint32_t most = 0;
    for (const ExactGradient& gradient : gradients) most = std::max(most, gradient.largest[block]);
    const int exponent = exact_exponent(most);
    units.assign(end - begin, 0);
    for (const ExactGradient& gradient : gradients)
      for (std::size_t shard = 0; shard < gradient.shards.size(); shard += count)
        add_exact(gradient.shards.subspan(shard + begin - slice.begin, end - begin), exponent,
                  units);
    exact_to_floats(units, exponent, 1, std::span(sum).subspan(begin - slice.begin, end - begin));
  }
  move(slice, pace, [&](std::size_t at, std::span<float> room) {
    return std::span<const float>(sum).subspan(at, room.size());
  });
  for (std::size_t at = std::max(slice.begin, arena_); at < slice.end; ++at)
    slice_values(slice)[at - slice.begin] = sum[at - slice.begin];
}

}  // namespace convoy
