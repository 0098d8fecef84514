// Which server keeps which part of the parameters. The arena is cut into slices: at most so large,
// each inside one bucket, and spread so that servers carry equal bytes. A server keeps its slices
// one behind the other, in a shard.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "nn/parameters.h"
#include "sync/strategy.h"

namespace convoy {

struct ServerSlice {
  int server = 0;
  int bucket = 0;
  std::size_t begin = 0, end = 0;  // in the arena, in floats
  std::size_t offset = 0;          // in the server's shard, in floats

  std::size_t count() const { return end - begin; }
};

struct ServerLayout {
  std::size_t arena = 0;  // floats that an optimizer moves
  std::size_t extra = 0;  // and that are only summed, behind them: running statistics
  int servers = 1;
  std::vector<ServerSlice> slices;  // by number, in arena order
  std::vector<std::size_t> shards;  // floats of each server

  std::size_t largest_slice() const;
};

struct LayoutOptions {
  int servers = 1;
  std::size_t slice_bytes = std::size_t{4} << 20;
  bool whole_parameters = false;  // no slice may end within a parameter (LARS)
  std::size_t extra = 0;          // floats behind the arena, in the last bucket
};

// Depends on nothing but its arguments. Throws ConfigError where there are more servers than
// parameters.
ServerLayout make_layout(std::span<const Parameter> parameters, std::span<const Bucket> buckets,
                         const LayoutOptions& options);

// The parameters that a server moves, in its shard: a part of each that its slices cut.
std::vector<Parameter> shard_parameters(const ServerLayout& layout,
                                        std::span<const Parameter> parameters, int server);

// Numbers that belong to the slices of a server, from an arena into a shard and back. An arena may
// be shorter than the layout's by what is extra.
void gather_shard(const ServerLayout& layout, int server, std::span<const float> arena,
                  std::span<float> shard);
void scatter_shard(const ServerLayout& layout, int server, std::span<const float> shard,
                   std::span<float> arena);

nlohmann::json to_json(const ServerLayout& layout);
ServerLayout layout_from(const nlohmann::json& object);

}  // namespace convoy
