#include "sync/ps/layout.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kAlign = 16;           // floats: a cache line
constexpr std::size_t kSmallest = 1 << 12;   // floats of a slice that is worth a message
constexpr std::size_t kSlicesOfAServer = 4;  // at least, so that shards can be made equal

// Where a range may be cut, its end included.
std::vector<std::size_t> cuts(std::size_t begin, std::size_t end, std::size_t most,
                              std::span<const Parameter> parameters, bool whole_parameters) {
  std::vector<std::size_t> places;
  if (!whole_parameters) {
    const std::size_t pieces = (end - begin + most - 1) / most;
    for (std::size_t i = 1; i < pieces; ++i) {
      const std::size_t place = begin + (end - begin) * i / pieces / kAlign * kAlign;
      if (place > begin && (places.empty() || place > places.back())) places.push_back(place);
    }
  } else {
    std::size_t start = begin, last = begin;  // ends of parameters
    for (const Parameter& parameter : parameters) {
      if (parameter.begin < begin || parameter.end > end) continue;
      if (last > start && parameter.end - start > most) places.push_back(start = last);
      last = parameter.end;
    }
  }
  places.push_back(end);
  return places;
}

// The largest first, each to the server that has least.
void spread(ServerLayout& layout) {
  std::vector<std::size_t> order(layout.slices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return layout.slices[a].count() > layout.slices[b].count();
  });
  layout.shards.assign(std::size_t(layout.servers), 0);
  for (const std::size_t i : order) {
    const auto least = std::min_element(layout.shards.begin(), layout.shards.end());
    layout.slices[i].server = int(least - layout.shards.begin());
    *least += layout.slices[i].count();
  }
  std::fill(layout.shards.begin(), layout.shards.end(), 0);
  for (ServerSlice& slice : layout.slices) {
    std::size_t& used = layout.shards[std::size_t(slice.server)];
    slice.offset = used;
    used += (slice.count() + kAlign - 1) / kAlign * kAlign;
  }
}

}  // namespace

std::size_t ServerLayout::largest_slice() const {
  std::size_t most = 0;
  for (const ServerSlice& slice : slices) most = std::max(most, slice.count());
  return most;
}

ServerLayout make_layout(std::span<const Parameter> parameters, std::span<const Bucket> buckets,
                         const LayoutOptions& options) {
  CHECK(!buckets.empty() && options.servers > 0, "{} buckets, {} servers", buckets.size(),
        options.servers);
  if (std::size_t(options.servers) > parameters.size())
    throw ConfigError("--servers {} is more than the {} tensors of the network: some would be idle",
                      options.servers, parameters.size());
  ServerLayout layout{.arena = buckets.back().end,
                      .extra = options.extra,
                      .servers = options.servers,
                      .slices = {},
                      .shards = {}};
  const std::size_t fair =
      (layout.arena + layout.extra) / (std::size_t(options.servers) * kSlicesOfAServer);
  std::size_t most = std::max(options.slice_bytes / sizeof(float), kAlign);
  if (options.servers > 1) most = std::min(most, std::max(fair, kSmallest));
  for (const Bucket& bucket : buckets) {
    std::size_t begin = bucket.begin;
    const bool last = &bucket == &buckets.back();
    const std::size_t end = last ? bucket.end + options.extra : bucket.end;
    for (const std::size_t cut : cuts(begin, end, most, parameters, options.whole_parameters)) {
      layout.slices.push_back({.server = 0, .bucket = bucket.id, .begin = begin, .end = cut});
      begin = cut;
    }
  }
  spread(layout);
  return layout;
}

std::vector<Parameter> shard_parameters(const ServerLayout& layout,
                                        std::span<const Parameter> parameters, int server) {
  std::vector<Parameter> own;
  for (const ServerSlice& slice : layout.slices) {
    if (slice.server != server) continue;
    for (const Parameter& parameter : parameters) {
      const std::size_t begin = std::max(parameter.begin, slice.begin);
      const std::size_t end = std::min(parameter.end, slice.end);
      if (begin >= end) continue;
      Parameter part = parameter;
      part.begin = slice.offset + begin - slice.begin;
      part.end = slice.offset + end - slice.begin;
      own.push_back(std::move(part));
    }
  }
  return own;
}

void gather_shard(const ServerLayout& layout, int server, std::span<const float> arena,
                  std::span<float> shard) {
  for (const ServerSlice& slice : layout.slices) {
    if (slice.server != server || slice.begin >= arena.size()) continue;
    const std::size_t count = std::min(slice.end, arena.size()) - slice.begin;
    std::copy_n(arena.begin() + std::ptrdiff_t(slice.begin), count,
                shard.begin() + std::ptrdiff_t(slice.offset));
  }
}

void scatter_shard(const ServerLayout& layout, int server, std::span<const float> shard,
                   std::span<float> arena) {
  for (const ServerSlice& slice : layout.slices) {
    if (slice.server != server || slice.begin >= arena.size()) continue;
    const std::size_t count = std::min(slice.end, arena.size()) - slice.begin;
    std::copy_n(shard.begin() + std::ptrdiff_t(slice.offset), count,
                arena.begin() + std::ptrdiff_t(slice.begin));
  }
}

nlohmann::json to_json(const ServerLayout& layout) {
  nlohmann::json slices = nlohmann::json::array();
  for (const ServerSlice& slice : layout.slices)
    slices.push_back({slice.server, slice.bucket, slice.begin, slice.end, slice.offset});
  return {{"arena", layout.arena},
          {"extra", layout.extra},
          {"servers", layout.servers},
          {"slices", slices},
          {"shards", layout.shards}};
}

ServerLayout layout_from(const nlohmann::json& object) {
  ServerLayout layout{.arena = object.at("arena"),
                      .extra = object.at("extra"),
                      .servers = object.at("servers"),
                      .slices = {},
                      .shards = object.at("shards")};
  for (const nlohmann::json& row : object.at("slices"))
    layout.slices.push_back({.server = row.at(0),
                             .bucket = row.at(1),
                             .begin = row.at(2),
                             .end = row.at(3),
                             .offset = row.at(4)});
  return layout;
}

}  // namespace convoy
