// All trained numbers of a network in one flat arena, with their gradients in another of the same
// layout, in the order in which backward finishes them (last layer first), so that a bucket of
// gradients is a range.
//
// A parameter is *stored* in the layout its kernels like (blocked, padded with zeros); *plain* is
// PyTorch's layout. Only import and export know the difference: updates and all-reduce work on
// stored numbers without caring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/float_arena.h"
#include "kernels/family.h"
#include "nn/network.h"

namespace convoy {

struct Parameter {
  ParameterSpec spec;
  std::size_t begin = 0,
              end = 0;  // its stored range in the arena, in floats; begin is a multiple of 16
};

// Part of the arena, in floats.
struct ArenaRange {
  std::size_t begin = 0, end = 0;
};

// BatchNorm's running statistics: not trained, but saved and evaluated with.
struct Buffer {
  std::string name;  // node's name + ".running_mean" or ".running_var"
  NodeId node = 0;
  std::vector<float> values;
};

// Those of one batch norm, as kernels read and write them.
struct RunningStatistics {
  float* mean = nullptr;
  float* variance = nullptr;
};

class Parameters {
 public:
  // Decides the layout by asking the family about each node of the network for this batch size.
  Parameters(const Network& network, const Family& family, int batch);

  std::span<const Parameter> list() const { return parameters_; }  // in arena order
  std::span<float> values() { return values_.span(); }
  std::span<const float> values() const { return values_.span(); }
  std::span<float> gradients() { return gradients_.span(); }
  std::span<const float> gradients() const { return gradients_.span(); }
  // From now on gradients (zeros, at first) or values lie here, where other workers can reach them:
  // memory as large, aligned to 64 bytes, that outlives this. Before the first batch.
  void place_gradients(std::span<float> memory) { gradients_.place(memory); }
  void place_values(std::span<float> memory) { values_.place(memory); }
  std::vector<Buffer>& buffers() { return buffers_; }  // in node order, mean before variance
  const std::vector<Buffer>& buffers() const { return buffers_; }
  RunningStatistics running_statistics(NodeId node);  // null where it is no batch norm
  const Parameter* find(NodeId node, Role role) const;
  const Parameter* find(const std::string& name) const;

  // Plain layout, spec.count() floats.
  void export_values(const Parameter& parameter, std::span<float> plain) const;
  void export_gradients(const Parameter& parameter, std::span<float> plain) const;
  void import_values(const Parameter& parameter, std::span<const float> plain);
  // An arena of the same layout that is not this one (an optimizer's state).
  void export_from(std::span<const float> arena, const Parameter& parameter,
                   std::span<float> plain) const;
  void import_to(std::span<float> arena, const Parameter& parameter,
                 std::span<const float> plain) const;

  // Places of the arena, ascending, where no number of a parameter is stored: zeros that stay so as
  // long as their gradients are.
  std::vector<std::uint32_t> padding() const;

  // He's initialisation for convolutions, PyTorch's default for dense layers, 1 and 0 for norms; by
  // Philox, so that a seed gives the same plain numbers whatever the stored layout.
  void initialize(const Network& network, std::uint64_t seed);

  // SHA-256 over all plain values and buffers, in node order: equal weights, equal text, on any CPU
  // and any layout.
  std::string sha256() const;

 private:
  std::size_t size_ = 0;
  FloatArena values_{0}, gradients_{0};
  std::vector<Parameter> parameters_;
  std::vector<std::unique_ptr<StoredLayout>> layouts_;
  std::vector<Buffer> buffers_;
};

}  // namespace convoy
