// ONNX files against Debian's checker and another engine, OpenCV's: the same logits.
#include "nn/onnx.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "nn/model.h"
#include "nn/zoo.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

// Prints the largest difference of logits, and in how many images the best class differs.
constexpr const char* kScript = R"(
import sys, numpy, onnx, cv2
folder, count, channels, height, width, classes = sys.argv[1], *map(int, sys.argv[2:7])
onnx.checker.check_model(onnx.load(folder + "/network.onnx"), full_check=True)
images = numpy.fromfile(folder + "/images", numpy.float32).reshape(count, channels, height, width)
expected = numpy.fromfile(folder + "/logits", numpy.float32).reshape(count, classes)
network = cv2.dnn.readNetFromONNX(folder + "/network.onnx")
network.setInput(images)
found = network.forward()
assert found.shape == expected.shape, (found.shape, expected.shape)
difference = abs(found - expected).max() / abs(expected).max()
assert difference < 1e-3, f"logits differ by {difference}"
assert (found.argmax(1) == expected.argmax(1)).all()
)";

class OnnxFile : public ::testing::TestWithParam<const char*> {
 protected:
  OnnxFile() : folder_(fs::temp_directory_path() / fmt::format("convoy-onnx-{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~OnnxFile() override { fs::remove_all(folder_); }

  void put(const std::string& name, std::span<const float> values) {
    write_file_atomically(folder_ / name,
                          {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }

  fs::path folder_;
};

// Weights and running statistics that are all different.
void stir(Model& model, std::mt19937& random) {
  std::normal_distribution<float> normal;
  for (Buffer& buffer : model.parameters().buffers())
    for (float& value : buffer.values)
      value = buffer.name.ends_with("var") ? 1 + std::abs(normal(random)) : normal(random) / 4;
}

class OnnxFileSlow : public OnnxFile {};

TEST_P(OnnxFileSlow, AnotherEngineAgrees) {
  const std::string name = GetParam();
  const bool large = name == "alexnet" || name == "vgg16" || name == "inception_v1";
  const int count = name == "mnist_cnn" ? 1000 : large ? 8 : 64;
  const Shape input = name == "shallow" || name == "mnist_cnn" ? Shape{1, 28, 28}
                      : name == "airbench"                     ? Shape{3, 32, 32}
                                                               : Shape{3, 64, 64};
  const Shape shape = large ? Shape{3, 224, 224} : input;
  Model model(make_network(name, shape, 10), {.batch = count, .precision = Precision::f32});
  std::mt19937 random(1);
  stir(model, random);
  Batch batch;
  std::normal_distribution<float> normal;
  batch.images.resize(shape.count() * std::size_t(count));
  for (float& pixel : batch.images) pixel = normal(random);
  batch.labels.assign(std::size_t(count), 0);
  batch.samples.assign(std::size_t(count), 0);
  model.evaluate(batch);
  put("images", batch.images);
  put("logits", model.logits());
  write_file_atomically(folder_ / "network.onnx", onnx_model(model.network(), model.parameters()));
  write_file_atomically(folder_ / "check.py", kScript);
  EXPECT_EQ(
      std::system(fmt::format("/usr/bin/python3 {0}/check.py {0} {1} {2} {3} {4} 10",
                              folder_.string(), count, shape.channels, shape.height, shape.width)
                      .c_str()),
      0);
}

INSTANTIATE_TEST_SUITE_P(Zoo, OnnxFileSlow,
                         ::testing::Values("shallow", "mnist_cnn", "airbench", "resnet18",
                                           "resnet50", "inception_v1", "alexnet", "vgg16"),
                         [](const auto& one) { return std::string(one.param); });

TEST(Onnx, SaysWhatItCannotExpress) {
  Network network("odd", Shape{3, 7, 7});
  network.then("pool", AdaptiveAveragePool{2, 2});
  network.then("fc", Dense{10});
  Model model(std::move(network), {.batch = 1});
  EXPECT_THROW(onnx_model(model.network(), model.parameters()), ConfigError);
}

}  // namespace
}  // namespace convoy
