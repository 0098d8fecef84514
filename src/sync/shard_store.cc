#include "sync/shard_store.h"

#include <algorithm>

namespace convoy {

ShardStore::ShardStore(Parameters& parameters) : parameters_(parameters) {
  std::size_t buffers = 0;
  for (const Buffer& buffer : parameters.buffers()) buffers += buffer.values.size();
  before_.resize(buffers);
}

void ShardStore::copy_buffers(std::span<float> to) const {
  auto place = to.begin();
  for (const Buffer& buffer : parameters_.buffers())
    place = std::copy(buffer.values.begin(), buffer.values.end(), place);
}

void ShardStore::set_buffers(std::span<const float> from) {
  auto place = from.begin();
  for (Buffer& buffer : parameters_.buffers()) {
    const auto end = place + std::ptrdiff_t(buffer.values.size());
    std::copy(place, end, buffer.values.begin());
    place = end;
  }
}

void ShardStore::begin_shard() {
  if (used_ == 0)
    copy_buffers(before_);
  else
    set_buffers(before_);
}

void ShardStore::end_shard(double share) {
  if (used_ == shards_.size()) shards_.emplace_back(size());
  std::vector<float>& shard = shards_[used_++];
  const std::span<const float> gradients = parameters_.gradients();
  std::copy(gradients.begin(), gradients.end(), shard.begin());
  const std::span<float> buffers = std::span(shard).subspan(gradients.size());
  copy_buffers(buffers);
  for (float& value : buffers) value = float(value * share);
}

}  // namespace convoy
