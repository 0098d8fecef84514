#include "train/start.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "data/augment.h"

namespace convoy {
namespace {

constexpr std::size_t kWhiteningImages = 2000;
constexpr double kLeastVariance = 5e-4;  // keeps components that are mostly noise small

// A symmetric matrix, row by row.
struct Symmetric {
  explicit Symmetric(std::size_t n) : size(n), numbers(n * n) {}
  double& at(std::size_t row, std::size_t column) { return numbers[row * size + column]; }
  std::size_t size;
  std::vector<double> numbers;
};

struct Component {
  double variance = 0;
  std::vector<double> direction;  // of length 1
};

// Rotates rows and columns p and q of `matrix` so that their common element becomes 0, and columns
// p and q of `basis` with them.
void rotate(Symmetric& matrix, Symmetric& basis, std::size_t p, std::size_t q) {
  if (matrix.at(p, q) == 0) return;
  const double slope = (matrix.at(q, q) - matrix.at(p, p)) / (2 * matrix.at(p, q));
  const double t = (slope >= 0 ? 1 : -1) / (std::abs(slope) + std::hypot(slope, 1.0));
  const double c = 1 / std::hypot(t, 1.0), s = t * c;
  const auto turn = [&](double& a, double& b) {
    const double old = a;
    a = c * old - s * b;
    b = s * old + c * b;
  };
  for (std::size_t k = 0; k < matrix.size; ++k) turn(matrix.at(k, p), matrix.at(k, q));
  for (std::size_t k = 0; k < matrix.size; ++k) turn(matrix.at(p, k), matrix.at(q, k));
  for (std::size_t k = 0; k < basis.size; ++k) turn(basis.at(k, p), basis.at(k, q));
}

// Eigenvectors by Jacobi's rotations, largest variance first. So many sweeps are more than any
// matrix of this size needs.
std::vector<Component> principal_components(Symmetric matrix) {
  constexpr int kSweeps = 20;
  const std::size_t n = matrix.size;
  Symmetric basis(n);
  for (std::size_t i = 0; i < n; ++i) basis.at(i, i) = 1;
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (std::size_t p = 0; p + 1 < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) rotate(matrix, basis, p, q);
  std::vector<Component> list(n);
  for (std::size_t i = 0; i < n; ++i) {
    list[i].variance = matrix.at(i, i);
    for (std::size_t k = 0; k < n; ++k) list[i].direction.push_back(basis.at(k, i));
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Component& a, const Component& b) { return a.variance > b.variance; });
  return list;
}

// Mean products of the pixels (channel, row, column) of kernel x kernel patches, at all positions
// of the first images.
Symmetric patch_products(const Dataset& data, int kernel) {
  const Shape shape = data.shape();
  const Augment normalise(data, {}, 0);
  const std::size_t size = std::size_t(shape.channels * kernel * kernel);
  const std::size_t images = std::min(data.size(), kWhiteningImages);
  std::vector<std::uint8_t> bytes(shape.count());
  std::vector<float> image(shape.count()), patch(size), sums(size * size);
  Symmetric total(size);
  for (std::size_t i = 0; i < images; ++i) {
    data.read(i, bytes);
    normalise.apply(bytes, 0, i, image);
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (int y = 0; y + kernel <= shape.height; ++y)
      for (int x = 0; x + kernel <= shape.width; ++x) {
        float* to = patch.data();
        for (int c = 0; c < shape.channels; ++c)
          for (int row = 0; row < kernel; ++row)
            to = std::copy_n(&image[(std::size_t(c) * shape.height + y + row) * shape.width + x],
                             kernel, to);
        for (std::size_t a = 0; a < size; ++a)
          for (std::size_t b = 0; b < size; ++b) sums[a * size + b] += patch[a] * patch[b];
      }
    for (std::size_t k = 0; k < sums.size(); ++k) total.numbers[k] += sums[k];
  }
  const double patches =
      double(images) * double(shape.height - kernel + 1) * double(shape.width - kernel + 1);
  for (double& number : total.numbers) number /= patches;
  return total;
}

const Node& first_convolution(const Network& network) {
  for (const Node& node : network.nodes()) {
    const auto* convolution = std::get_if<Convolution>(&node.layer);
    if (convolution && node.inputs[0] == 0 && convolution->groups == 1) return node;
  }
  throw ConfigError("--start whiten: {} has no convolution that reads the image", network.name());
}

// Where there are fewer filters than signed components the weakest are left out; where there are
// more, the rest of the filters stay random.
void whiten(const Dataset& data, Model& model) {
  const Node& node = first_convolution(model.network());
  const int kernel = std::get<Convolution>(node.layer).kernel;
  const Shape shape = data.shape();
  if (kernel > shape.height || kernel > shape.width || data.size() == 0) return;
  const auto components = principal_components(patch_products(data, kernel));
  const Parameter& weight = *model.parameters().find(node.id, Role::weight);
  std::vector<float> plain(weight.spec.count());
  model.parameters().export_values(weight, plain);
  const std::size_t filter = components.size();
  const std::size_t pairs = std::min(plain.size() / filter / 2, components.size());
  for (std::size_t i = 0; i < pairs; ++i)
    for (std::size_t k = 0; k < filter; ++k) {
      const double value =
          components[i].direction[k] / std::sqrt(components[i].variance + kLeastVariance);
      plain[2 * i * filter + k] = float(value);
      plain[(2 * i + 1) * filter + k] = float(-value);
    }
  model.parameters().import_values(weight, plain);
}

void begin_as_identity(const Node& node, Model& model) {
  const auto* convolution = std::get_if<Convolution>(&node.layer);
  if (!convolution || convolution->groups != 1) return;
  if (model.network().input_shape(node).area() != node.shape.area()) return;
  if (convolution->kernel % 2 == 0) return;
  const Parameter& weight = *model.parameters().find(node.id, Role::weight);
  const std::size_t outputs = std::size_t(weight.spec.dims[0]);
  const std::size_t inputs = std::size_t(weight.spec.dims[1]);
  const std::size_t taps = std::size_t(convolution->kernel * convolution->kernel);
  std::vector<float> plain(weight.spec.count());
  model.parameters().export_values(weight, plain);
  for (std::size_t i = 0; i < std::min(inputs, outputs); ++i) {
    const auto filter = plain.begin() + std::ptrdiff_t(i * inputs * taps);
    std::fill_n(filter, inputs * taps, 0.0f);
    filter[std::ptrdiff_t(i * taps + taps / 2)] = 1;
  }
  model.parameters().import_values(weight, plain);
}

}  // namespace

void set_start(const StartOptions& options, const Dataset& data, Model& model) {
  if (options.identity)
    for (const Node& node : model.network().nodes())
      if (node.id != 0 && node.inputs[0] != 0) begin_as_identity(node, model);
  if (options.whiten) whiten(data, model);
}

}  // namespace convoy
