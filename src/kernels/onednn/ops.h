// One maker per layer; each returns an Op bound to its OpSpec. Layouts as in engine.h.
#pragma once

#include <memory>

#include "kernels/family.h"
#include "kernels/tuner.h"

namespace convoy::onednn {

// Without a tuner the algorithm follows from the sizes.
std::unique_ptr<Op> make_convolution(const Convolution& layer, const OpSpec& spec, Tuner* tuner);
std::unique_ptr<Op> make_batch_norm(const BatchNorm& layer, const OpSpec& spec);
std::unique_ptr<Op> make_dense(const Dense& layer, const OpSpec& spec);
std::unique_ptr<Op> make_relu(const OpSpec& spec);
std::unique_ptr<Op> make_add(const Add& layer, const OpSpec& spec);
std::unique_ptr<Op> make_concat(const OpSpec& spec);
std::unique_ptr<Op> make_dropout(const Dropout& layer, const OpSpec& spec);
std::unique_ptr<Op> make_max_pool(const MaxPool& layer, const OpSpec& spec);
std::unique_ptr<Op> make_average_pool(const AveragePool& layer, const OpSpec& spec);
std::unique_ptr<Op> make_adaptive_average_pool(const OpSpec& spec);
std::unique_ptr<Op> make_local_response_norm(const LocalResponseNorm& layer, const OpSpec& spec);

std::unique_ptr<StoredLayout> convolution_layout(const Convolution& layer, const OpSpec& spec);
std::unique_ptr<StoredLayout> dense_layout(const Dense& layer, const OpSpec& spec);

// gradient = 0 where output <= 0: a folded ReLU's share of backward.
void mask_gradient(float* gradient, const float* output, std::size_t count);

}  // namespace convoy::onednn
