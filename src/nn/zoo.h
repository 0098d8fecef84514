// The networks of the studies, by name. A new one is a file zoo_NAME.cc, its declaration in
// zoo_networks.h and a row in the table in zoo.cc.
#pragma once

#include <string>
#include <vector>

#include "base/shape.h"
#include "nn/network.h"

namespace convoy {

// All names, in the order in which `convoy zoo` lists them.
const std::vector<std::string>& zoo_names();

// Throws ConfigError for an unknown name (naming the nearest) and for an input the network cannot
// take.
Network make_network(const std::string& name, Shape input, int classes);

// What each network was made for: 1x28x28 and 10 classes for shallow and mnist_cnn, 3x32x32 and 10
// classes for airbench, 3x224x224 and 1000 classes for the others. All throw ConfigError for an
// unknown name.
Shape zoo_default_input(const std::string& name);
int zoo_default_classes(const std::string& name);
// The data set and the studies that use it, as in "MNIST (pani2020)".
const std::string& zoo_studies(const std::string& name);

}  // namespace convoy
