// What a graph runs, before memory: the network's layers rewritten so that less is computed and the
// result is the same.
//
//  - A ReLU in front of a max pool moves behind it (the maximum of the positive parts is the
//  positive part of the maximum), where
//    there is less to do; any ReLU is then folded into the layer that makes its input, where the
//    family can do that.
//  - A batch norm whose output is only read by an addition does that addition itself, where the
//  family can do that.
//  - Rows and columns that nobody reads are not computed. Floor-mode pooling drops the last row of
//  an odd map; the layers above
//    it then need not make that row, nor what only that row reads, up to the image itself.
#pragma once

#include <vector>

#include "kernels/family.h"
#include "nn/network.h"

namespace convoy {

// A value is named by the node whose output it is.
struct PlannedLayer {
  NodeId node = 0;  // whose parameters and name it bears
  Layer layer;
  std::vector<NodeId> inputs;  // values
  NodeId output = 0;           // value
  Shape shape;                 // of the output, without what nobody reads
};

// In order of execution. The input (node 0) comes first, with the part of the image that is read.
std::vector<PlannedLayer> plan_layers(const Network& network, const Family& family);

// The family's view of one planned layer. `tuning_batch` decides layouts and algorithms, see
// OpSpec.
OpSpec op_spec(const Network& network, const std::vector<PlannedLayer>& plan,
               const PlannedLayer& layer, int batch, int tuning_batch, bool training);

}  // namespace convoy
