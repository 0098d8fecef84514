// The networks of the studies, by name.
#pragma once

#include <string>
#include <vector>

#include "base/shape.h"
#include "nn/network.h"

namespace convoy {

// All names, in the order in which `convoy zoo` lists them.
const std::vector<std::string>& zoo_names();

// Throws ConfigError for an unknown name (naming the nearest) and for an input the network cannot take.
Network make_network(const std::string& name, Shape input, int classes);

// The input each network was made for: 1x28x28 for shallow and mnist_cnn, 3x224x224 for the others.
Shape zoo_default_input(const std::string& name);

}  // namespace convoy
