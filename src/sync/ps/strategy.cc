#include "sync/ps/strategy.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "sync/exact.h"
#include "sync/ps/shard.h"

namespace convoy {

ServerStrategy::ServerStrategy(Parts parts)
    : parts_(std::move(parts)), code_(make_wire_code(parts_.wire)) {
  const std::vector<ServerSlice>& slices = parts_.layout.slices;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::size_t bucket = std::size_t(slices[i].bucket);
    if (slices_of_.size() <= bucket) slices_of_.resize(bucket + 1);
    slices_of_[bucket].push_back(std::uint32_t(i));
  }
  under_way_.assign(slices_of_.size(), 0);
  if (code_) messages_.resize(slices.size());
  if (code_ && code_->feeds_back()) residual_.resize(parts_.layout.arena);
  if (code_) zeros_ = parts_.parameters.padding();
  if (parts_.wire == "bf16") parts_.client.expect_halves();
  if (!parts_.shards) return;
  bodies_.resize(slices.size());
  received_.resize(parts_.layout.arena + parts_.layout.extra);
}

// When the first gradient is pushed, all weights of the step are here, and none of the next.
WorkerHead ServerStrategy::head() {
  if (!generation_) {
    generation_ = parts_.client.generation();
    // What was left unsaid of weights that were given up is worth nothing.
    if (std::exchange(fed_back_, *generation_) != *generation_)
      std::fill(residual_.begin(), residual_.end(), 0.0f);
  }
  return {.kind = WorkerHead::push,
          .generation = *generation_,
          .epoch = step_.epoch,
          .samples = std::uint32_t(step_.samples),
          .mean_over = std::uint32_t(step_.mean_over),
          .extra = step_.extra};
}

std::span<float> ServerStrategy::place_of(const ServerSlice& slice) {
  const std::span<float> arena = parts_.shards ? received_ : parts_.parameters.values();
  return arena.subspan(slice.begin, slice.count());
}

void ServerStrategy::push(std::uint32_t slice) {
  const ServerSlice& range = parts_.layout.slices[slice];
  const std::span<const float> values =
      parts_.parameters.gradients().subspan(range.begin, range.count());
  if (!code_) return parts_.client.push(slice, head(), std::as_bytes(values), place_of(range));
  std::vector<std::uint32_t>& message = messages_[slice];
  message.resize(code_->words(values.size()));
  const std::span<float> unsaid = residual_.empty()
                                      ? std::span<float>()
                                      : std::span(residual_).subspan(range.begin, range.count());
  parts_.client.push(slice, head(), std::as_bytes(std::span(message)), place_of(range),
                     [this, values, unsaid, &message] { code_->encode(values, unsaid, message); });
}

void ServerStrategy::bucket_ready(const Bucket& bucket) {
  if (parts_.shards) return;
  CHECK(!under_way_[std::size_t(bucket.id)], "bucket {} is ready before it came back", bucket.id);
  ready_.push_back(bucket.id);
  if (!parts_.overlap) return;
  for (const int id : std::exchange(ready_, {})) {
    under_way_[std::size_t(id)] = 1;
    for (const std::uint32_t slice : slices_of_[std::size_t(id)]) push(slice);
  }
}

void ServerStrategy::end_step(const UpdateRate&, std::vector<ArenaRange> moved) {
  CHECK(moved.empty(), "weights moved before their gradients were pushed");
  if (parts_.shards) return push_shards();
  for (const int id : std::exchange(ready_, {})) {
    under_way_[std::size_t(id)] = 1;
    for (const std::uint32_t slice : slices_of_[std::size_t(id)]) push(slice);
  }
}

// The exponent of an exact sum is that of a whole block, whichever servers keep its parts.
void ServerStrategy::push_shards() {
  const std::vector<std::span<const float>> shards = parts_.shards->shards();
  const std::size_t size = received_.size();
  std::vector<std::uint32_t> largest((size + kExactBlock - 1) / kExactBlock, 0);
  for (std::size_t block = 0; block < largest.size(); ++block)
    for (const std::span<const float>& shard : shards)
      largest[block] =
          std::max(largest[block],
                   largest_magnitude(shard.subspan(
                       block * kExactBlock, std::min(kExactBlock, size - block * kExactBlock))));
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    const ServerSlice& slice = parts_.layout.slices[i];
    const Range blocks = exact_blocks(slice);
    std::vector<float>& body = bodies_[i];
    body.clear();
    for (std::size_t block = 0; block < blocks.count; ++block)
      body.push_back(std::bit_cast<float>(largest[blocks.begin + block]));
    for (const std::span<const float>& shard : shards) {
      const auto part = shard.subspan(slice.begin, slice.count());
      body.insert(body.end(), part.begin(), part.end());
    }
    WorkerHead made = head();
    made.shards = std::uint32_t(shards.size());
    parts_.client.push(std::uint32_t(i), made, std::as_bytes(std::span(body)), place_of(slice));
  }
  under_way_[0] = 1;
}

void ServerStrategy::wait(std::uint32_t slice) {
  parts_.client.wait(slice);
  const ServerSlice& range = parts_.layout.slices[slice];
  zero_places(zeros_, range.begin, place_of(range));
}

void ServerStrategy::await(const Bucket& bucket) {
  if (!under_way_[std::size_t(bucket.id)]) return;
  for (const std::uint32_t slice : slices_of_[std::size_t(bucket.id)]) wait(slice);
}

void ServerStrategy::apply(const Bucket& bucket) {
  if (!std::exchange(under_way_[std::size_t(bucket.id)], 0) || !parts_.shards) return;
  parts_.shards->clear();
  const std::span<float> values = parts_.parameters.values();
  std::copy_n(received_.begin(), values.size(), values.begin());
  parts_.shards->set_buffers(std::span(received_).subspan(values.size()));
}

void ServerStrategy::pull_all() {
  for (std::size_t i = parts_.layout.slices.size(); i-- > 0;)
    parts_.client.pull(std::uint32_t(i), place_of(parts_.layout.slices[i]));
  for (std::size_t i = 0; i < parts_.layout.slices.size(); ++i) wait(std::uint32_t(i));
  if (!parts_.shards) return;
  const std::span<float> values = parts_.parameters.values();
  std::copy_n(received_.begin(), values.size(), values.begin());
  parts_.shards->set_buffers(std::span(received_).subspan(values.size()));
}

}  // namespace convoy
