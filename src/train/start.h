// Weights that training starts from, where they are not simply random.
#pragma once

#include "data/dataset.h"
#include "nn/model.h"

namespace convoy {

struct StartOptions {
  // The first convolution's filters become the principal components of patches of training images,
  // each divided by its standard deviation and with both signs (Page 2018, Jordan 2024).
  bool whiten = false;
  // The first filters of every convolution that keeps its map's size copy one input channel each
  // (Zagoruyko & Komodakis 2017); the others stay random.
  bool identity = false;
};

// Changes the fresh weights of `model`. Depends on nothing but the weights and the data. Throws
// ConfigError where a network has no convolution to whiten.
void set_start(const StartOptions& options, const Dataset& data, Model& model);

}  // namespace convoy
