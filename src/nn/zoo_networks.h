// What the table in zoo.cc refers to: one function per file zoo_*.cc. `name` tells apart the
// members of a family.
#pragma once

#include <string>

#include "nn/network.h"

namespace convoy {

// Inputs of at most 64 pixels on both sides get a variant whose stem keeps their resolution.
inline bool is_small_image(const Shape& input) { return input.height <= 64 && input.width <= 64; }

Network make_shallow(const std::string& name, Shape input, int classes);
Network make_mnist_cnn(const std::string& name, Shape input, int classes);
Network make_airbench(const std::string& name, Shape input, int classes);
Network make_resnet(const std::string& name, Shape input, int classes);
Network make_inception_v1(const std::string& name, Shape input, int classes);
Network make_alexnet(const std::string& name, Shape input, int classes);
Network make_vgg(const std::string& name, Shape input, int classes);

}  // namespace convoy
