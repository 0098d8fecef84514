// Networks with their weights as ONNX files (opset 13), which other engines run.
#pragma once

#include <string>

#include "nn/network.h"
#include "nn/parameters.h"

namespace convoy {

// The bytes of a model that evaluates: running statistics, no dropout. Its input "input" is
// [N, C, H, W] of normalised images as in training, its output "logits" is [N, classes]. Throws
// ConfigError for a layer that ONNX does not have.
std::string onnx_model(const Network& network, const Parameters& parameters);

}  // namespace convoy
