// Every pass takes values and weights to 36 points, where convolution is a product of matrices,
// one for each point, and comes back. In between lie
//   values  [36][tiles][channels]: a few tiles at a time, so that they stay in the cache
//   weights [36][outer / 16][inner][16]: as the product reads them, or leaves their gradients
// with some room between rows and between points, lest all of them compete for the same lines of
// the cache.
#include "kernels/winograd/winograd.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/parallel.h"
#include "kernels/winograd/lanes.h"

namespace convoy::winograd {
namespace {

constexpr int kRoom = 16;  // floats: a line of the cache

// The tiles of outputs that cover all maps of a batch, `side` by `side`.
struct Tiles {
  int side, down, across, count;

  Tiles(int tile_side, int batch, const Shape& target)
      : side(tile_side),
        down((target.height + side - 1) / side),
        across((target.width + side - 1) / side),
        count(batch * down * across) {}

  struct Place {
    int sample, y, x;  // of its first output
  };
  Place operator[](int tile) const {
    return {tile / (down * across), tile / across % down * side, tile % across * side};
  }
};

struct ValueTable {
  std::size_t row, point;  // floats from one to the next

  ValueTable(int tiles, int channels)
      : row(std::size_t(channels) + kRoom), point(tiles * row + kRoom) {}
  std::size_t floats() const { return kPoints * point; }
};

struct WeightTable {
  int inner, outer;
  std::size_t point;

  WeightTable(int inner_channels, int outer_channels)
      : inner(inner_channels),
        outer(outer_channels),
        point(std::size_t(inner_channels) * outer_channels + kRoom) {}
  std::size_t floats() const { return kPoints * point; }
  int panels() const { return (outer + kPanel - 1) / kPanel; }
  int lanes(int panel) const { return std::min(kPanel, outer - panel * kPanel); }
  std::size_t place(int panel) const { return std::size_t(panel) * kPanel * inner; }
};

// Tiles at a time. Few keep the values in the second-level cache; the more channels, the more tiles
// must share the reading of their weights.
int tiles_of_values(int inner, int outer) {
  return std::clamp((inner + outer) / 16 / kRows * kRows, 2 * kRows, 8 * kRows);
}

// For gradients of weights all threads work on the same tiles: as many as keep them busy between
// two meetings.
int tiles_of_gradients(const Size& size) {
  constexpr int kBytes = 4 << 20;
  const int tile = kPoints * int(sizeof(float)) * (size.source.channels + size.target.channels);
  return std::clamp(kBytes / tile, 8 * kRows, 32 * kRows);
}

// Tiles [begin, end) to their points: values of the source by B', which begin `before` the first
// outputs, or gradients of the target by A. What lies outside a map is zero.
template <int kFrom, auto kTransform>
void transform_tiles(const Tiles& tiles, int begin, int end, const Shape& shape, int before,
                     const float* values, const ValueTable& table, float* to) {
  const std::size_t plane = shape.area() * kLanes;
  const int blocks = shape.channels / kLanes;
  const int point = int(table.point / kLanes);
  for (int tile = begin; tile < end; ++tile, to += table.row) {
    const auto [sample, first_y, first_x] = tiles[tile];
    const int y = first_y - before, x = first_x - before;
    const bool inside = y >= 0 && x >= 0 && y + kFrom <= shape.height && x + kFrom <= shape.width;
    const float* map = values + std::size_t(sample) * blocks * plane;
    for (int block = 0; block < blocks; ++block, map += plane) {
      const auto* from = reinterpret_cast<const Lanes*>(map) + std::ptrdiff_t(y) * shape.width + x;
      int step = shape.width;
      Lanes square[kFrom * kFrom];
      if (!inside) {
        for (int i = 0; i < kFrom; ++i)
          for (int j = 0; j < kFrom; ++j)
            square[i * kFrom + j] =
                y + i >= 0 && y + i < shape.height && x + j >= 0 && x + j < shape.width
                    ? from[i * shape.width + j]
                    : Eight::same(0);
        from = square;
        step = kFrom;
      }
      Lanes half[kSide * kFrom];
      for (int j = 0; j < kFrom; ++j) kTransform(from + j, step, half + j, kFrom);
      auto* points = reinterpret_cast<Lanes*>(to + block * kLanes);
      for (int i = 0; i < kSide; ++i)
        kTransform(half + i * kFrom, 1, points + i * kSide * point, point);
    }
  }
}

// Tiles [begin, end) from their points to outputs.
template <int kTile>
void transform_back(const Tiles& tiles, int begin, int end, const Shape& shape,
                    const ValueTable& table, const float* products, const float* bias, bool relu,
                    float* target) {
  const std::size_t plane = shape.area() * kLanes;
  const int blocks = shape.channels / kLanes;
  const int point = int(table.point / kLanes);
  for (int tile = begin; tile < end; ++tile, products += table.row) {
    const auto [sample, y, x] = tiles[tile];
    const int rows = std::min(kTile, shape.height - y), columns = std::min(kTile, shape.width - x);
    float* map = target + std::size_t(sample) * blocks * plane;
    for (int block = 0; block < blocks; ++block, map += plane) {
      const auto* points = reinterpret_cast<const Lanes*>(products + block * kLanes);
      Lanes half[kTile * kSide];
      for (int j = 0; j < kSide; ++j)
        transform_products<Eight, kTile>(points + j * point, kSide * point, half + j, kSide);
      const Lanes offset = bias ? Eight::load(bias + block * kLanes) : Eight::same(0);
      const Lanes least = relu ? Eight::same(0) : Eight::same(-__builtin_inff());
      for (int i = 0; i < rows; ++i) {
        Lanes line[kTile];
        transform_products<Eight, kTile>(half + i * kSide, 1, line, 1);
        float* to = map + (std::size_t(y + i) * shape.width + x) * kLanes;
        for (int j = 0; j < columns; ++j)  // (in this order a NaN stays one)
          Eight::store(to + j * kLanes, _mm256_max_ps(least, line[j] + offset));
      }
    }
  }
}

// Weights to their points. Backward to the data is a convolution by the same weights, turned round
// and with input and output exchanged.
template <int kTap>
void transform_all_weights(const Size& size, const float* weights, bool backward,
                           const WeightTable& table, float* to) {
  constexpr int kTaps = kTap * kTap;
  const int blocks_in = size.source.channels / kLanes;
  const int point = int(table.point / kLanes);
  const int blocks = table.inner / kLanes;
  parallel_for(std::size_t(table.panels()) * blocks, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t item = begin; item < end; ++item) {
      const int panel = int(item / blocks), inner = int(item % blocks);
      const int lanes = table.lanes(panel);
      float* rows = to + table.place(panel) + std::size_t(inner) * kLanes * lanes;
      for (int part = 0; part * kLanes < lanes; ++part) {
        const int outer = panel * kPanel / kLanes + part;
        const std::size_t stored = backward ? std::size_t(inner) * blocks_in + outer
                                            : std::size_t(outer) * blocks_in + inner;
        const float* from = weights + stored * kTaps * kLanes * kLanes;
        Lanes taps[kTaps][kLanes];  // [tap][channel inside], lanes outside
        for (int tap = 0; tap < kTaps; ++tap) {
          Lanes* block = taps[backward ? kTaps - 1 - tap : tap];
          for (int i = 0; i < kLanes; ++i)
            block[i] = Eight::load(from + (tap * kLanes + i) * kLanes);
          if (backward) transpose(block);
        }
        for (int i = 0; i < kLanes; ++i) {
          Lanes half[kSide * kTap];
          for (int j = 0; j < kTap; ++j)
            transform_weights<Eight, kTap>(&taps[j][i], kTap * kLanes, half + j, kTap);
          auto* points = reinterpret_cast<Lanes*>(rows + i * lanes + part * kLanes);
          for (int j = 0; j < kSide; ++j)
            transform_weights<Eight, kTap>(half + j * kTap, 1, points + j * kSide * point, point);
        }
      }
    }
  });
}

// And their gradients back.
template <int kTap>
void transform_weights_back(const WeightTable& table, const float* products, float* gradients) {
  constexpr int kTaps = kTap * kTap;
  const int point = int(table.point / kLanes);
  const int blocks = table.inner / kLanes;
  parallel_for(
      std::size_t(table.outer) / kLanes * blocks, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t item = begin; item < end; ++item) {
          const int outer = int(item / blocks) * kLanes, inner = int(item % blocks);
          const int panel = outer / kPanel, lanes = table.lanes(panel);
          const float* rows =
              products + table.place(panel) + outer % kPanel + std::size_t(inner) * kLanes * lanes;
          float* to = gradients + item * kTaps * kLanes * kLanes;
          for (int i = 0; i < kLanes; ++i, rows += lanes) {
            const auto* points = reinterpret_cast<const Lanes*>(rows);
            Lanes half[kTap * kSide], taps[kTaps];
            for (int j = 0; j < kSide; ++j)
              transform_weight_products<Eight, kTap>(points + j * point, kSide * point, half + j,
                                                     kSide);
            for (int j = 0; j < kTap; ++j)
              transform_weight_products<Eight, kTap>(half + j * kSide, 1, taps + j * kTap, 1);
            for (int tap = 0; tap < kTaps; ++tap)
              Eight::store(to + (tap * kLanes + i) * kLanes, taps[tap]);
          }
        }
      });
}

// What forward and backward to the data have in common; threads share the tiles.
struct Convolving {
  int batch;
  Shape from, to;
  int padding;
  int threads;

  int tiles() const { return tiles_of_values(from.channels, to.channels); }
  WeightTable weights() const { return {from.channels, to.channels}; }
  ValueTable source() const { return {tiles(), from.channels}; }
  ValueTable target() const { return {tiles(), to.channels}; }
  std::size_t scratch_floats() const {
    return weights().floats() + threads * (source().floats() + target().floats());
  }

  // `scratch` begins with the weights at their points.
  template <int kTile>
  void run(const float* values, const float* bias, bool relu, float* result, float* scratch) const {
    const Tiles all(kTile, batch, to);
    const WeightTable w = weights();
    const ValueTable s = source(), t = target();
    parallel(threads, [&](int thread, int team) {
      const int groups = (all.count + kRows - 1) / kRows;
      const int first = groups * thread / team * kRows;
      const int last = std::min(all.count, groups * (thread + 1) / team * kRows);
      float* points = scratch + w.floats() + thread * (s.floats() + t.floats());
      float* products = points + s.floats();
      for (int begin = first; begin < last; begin += tiles()) {
        const int end = std::min(last, begin + tiles());
        transform_tiles<kSide, transform_source<Eight>>(all, begin, end, from, padding, values, s,
                                                        points);
        for (int point = 0; point < kPoints; ++point)
          for (int panel = 0; panel < w.panels(); ++panel)
            multiply({.left = points + point * s.point,
                      .left_row = s.row,
                      .left_step = 1,
                      .right = scratch + point * w.point + w.place(panel),
                      .right_step = std::size_t(w.lanes(panel)),
                      .sums = products + point * t.point + panel * kPanel,
                      .sums_row = t.row},
                     end - begin, w.lanes(panel), from.channels, false);
        transform_back<kTile>(all, begin, end, to, t, products, bias, relu, result);
      }
    });
  }
};

Convolving forwards(const Size& size) {
  return {size.batch, size.source, size.target, size.padding, size.threads};
}

Convolving backwards(const Size& size) {
  return {size.batch, size.target, size.source, size.kernel - 1 - size.padding, size.threads};
}

struct GradientTables {
  int tiles;
  ValueTable source, target;
  WeightTable weights;

  explicit GradientTables(const Size& size)
      : tiles(tiles_of_gradients(size)),
        source(tiles, size.source.channels),
        target(tiles, size.target.channels),
        weights(size.source.channels, size.target.channels) {}
  std::size_t floats() const { return weights.floats() + source.floats() + target.floats(); }
};

// Scratch: one number for each channel of the target, then tables.
double* channel_numbers(std::byte* scratch) { return reinterpret_cast<double*>(scratch); }
std::size_t channel_bytes(const Size& size) { return size.target.channels * sizeof(double); }
float* tables_in(const Size& size, std::byte* scratch) {
  return reinterpret_cast<float*>(scratch + channel_bytes(size));
}

template <int kTap>
void run_forward(const Size& size, const float* source, const float* weights,
                 std::span<const float> bias, bool relu, float* target, std::byte* scratch) {
  const Convolving convolving = forwards(size);
  float* memory = tables_in(size, scratch);
  auto* all_biases = reinterpret_cast<float*>(channel_numbers(scratch));
  std::fill(std::copy(bias.begin(), bias.end(), all_biases), all_biases + size.target.channels,
            0.0f);
  transform_all_weights<kTap>(size, weights, false, convolving.weights(), memory);
  convolving.run<kSide + 1 - kTap>(source, all_biases, relu, target, memory);
}

template <int kTap>
void run_backward_data(const Size& size, const float* weights, const float* target_gradient,
                       float* source_gradient, std::byte* scratch) {
  const Convolving convolving = backwards(size);
  float* memory = tables_in(size, scratch);
  transform_all_weights<kTap>(size, weights, true, convolving.weights(), memory);
  convolving.run<kSide + 1 - kTap>(target_gradient, nullptr, false, source_gradient, memory);
}

template <int kTap>
void run_backward_weights(const Size& size, const float* source, const float* target_gradient,
                          float* weight_gradient, std::span<float> bias_gradient,
                          std::byte* scratch) {
  constexpr int kTile = kSide + 1 - kTap;
  const Tiles all(kTile, size.batch, size.target);
  const GradientTables tables(size);
  const WeightTable& w = tables.weights;
  float* sums = tables_in(size, scratch);
  float* values = sums + w.floats();
  float* gradients = values + tables.source.floats();
  double* bias_sums = channel_numbers(scratch);
  std::fill_n(bias_sums, w.outer, 0.0);
  for (int begin = 0; begin < all.count; begin += tables.tiles) {
    const int count = std::min(tables.tiles, all.count - begin);
    parallel_for(count, kRows, [&](std::size_t first, std::size_t last) {
      transform_tiles<kSide, transform_source<Eight>>(
          all, begin + int(first), begin + int(last), size.source, size.padding, source,
          tables.source, values + first * tables.source.row);
      transform_tiles<kTile, transform_gradients<Eight, kTile>>(
          all, begin + int(first), begin + int(last), size.target, 0, target_gradient,
          tables.target, gradients + first * tables.target.row);
    });
    parallel_for(std::size_t(kPoints) * w.panels(), 1, [&](std::size_t first, std::size_t last) {
      for (std::size_t item = first; item < last; ++item) {
        const int point = int(item) / w.panels(), panel = int(item) % w.panels();
        const int lanes = w.lanes(panel);
        const float* right = gradients + point * tables.target.point + panel * kPanel;
        multiply({.left = values + point * tables.source.point,
                  .left_row = 1,
                  .left_step = tables.source.row,
                  .right = right,
                  .right_step = tables.target.row,
                  .sums = sums + point * w.point + w.place(panel),
                  .sums_row = std::size_t(lanes)},
                 w.inner, lanes, count, begin > 0);
        if (point == kSumPoint)
          for (int tile = 0; tile < count; ++tile)
            for (int lane = 0; lane < lanes; ++lane)
              bias_sums[panel * kPanel + lane] += right[tile * tables.target.row + lane];
      }
    });
  }
  transform_weights_back<kTap>(w, sums, weight_gradient);
  for (std::size_t channel = 0; channel < bias_gradient.size(); ++channel)
    bias_gradient[channel] = float(bias_sums[channel]);
}

}  // namespace

std::size_t scratch_bytes(const Size& size) {
  CHECK(size.source.channels % kLanes == 0 && size.target.channels % kLanes == 0,
        "channels are not multiples of {}", kLanes);
  CHECK(size.kernel == 3 || size.kernel == 5, "a kernel of {}", size.kernel);
  CHECK(size.padding >= 0 && size.padding < size.kernel, "a padding of {}", size.padding);
  return channel_bytes(size) + sizeof(float) * std::max({forwards(size).scratch_floats(),
                                                         backwards(size).scratch_floats(),
                                                         GradientTables(size).floats()});
}

void forward(const Size& size, const float* source, const float* weights,
             std::span<const float> bias, bool relu, float* target, std::byte* scratch) {
  const auto run = size.kernel == 3 ? run_forward<3> : run_forward<5>;
  run(size, source, weights, bias, relu, target, scratch);
}

void backward_data(const Size& size, const float* weights, const float* target_gradient,
                   float* source_gradient, std::byte* scratch) {
  const auto run = size.kernel == 3 ? run_backward_data<3> : run_backward_data<5>;
  run(size, weights, target_gradient, source_gradient, scratch);
}

void backward_weights(const Size& size, const float* source, const float* target_gradient,
                      float* weight_gradient, std::span<float> bias_gradient, std::byte* scratch) {
  const auto run = size.kernel == 3 ? run_backward_weights<3> : run_backward_weights<5>;
  run(size, source, target_gradient, weight_gradient, bias_gradient, scratch);
}

}  // namespace convoy::winograd
