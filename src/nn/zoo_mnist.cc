// The two networks that the studies train on MNIST.
#include "nn/zoo_networks.h"

namespace convoy {

// pani2020: two convolutions of 5x5, each with ReLU and pooling, leave 800 features of a 28x28
// image.
Network make_shallow(const std::string& name, Shape input, int classes) {
  Network net(name, input);
  net.then("conv1", Convolution{.channels = 20, .kernel = 5});
  net.then("relu1", Relu{});
  net.then("pool1", MaxPool{});
  net.then("conv2", Convolution{.channels = 50, .kernel = 5});
  net.then("relu2", Relu{});
  net.then("pool2", MaxPool{});
  net.then("fc1", Dense{.features = 500});
  net.then("relu3", Relu{});
  net.then("fc2", Dense{.features = classes});
  return net;
}

// wang2020: three convolutions of 3x3 without padding leave 256 features of a 28x28 image.
Network make_mnist_cnn(const std::string& name, Shape input, int classes) {
  Network net(name, input);
  int number = 0;
  for (const int channels : {32, 128, 256}) {
    const std::string index = std::to_string(++number);
    net.then("conv" + index, Convolution{.channels = channels, .kernel = 3});
    net.then("relu" + index, Relu{});
    net.then("pool" + index, MaxPool{});
  }
  net.then("dropout", Dropout{.rate = 0.25f});
  net.then("fc1", Dense{.features = 1000});
  net.then("relu4", Relu{});
  net.then("fc2", Dense{.features = 100});
  net.then("relu5", Relu{});
  net.then("fc3", Dense{.features = classes});
  return net;
}

}  // namespace convoy
