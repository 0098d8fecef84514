#include "cli/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace convoy {
namespace {

struct Extent {
  double low = std::numeric_limits<double>::max();
  double high = std::numeric_limits<double>::lowest();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // From 0 to 1; in the middle where all are equal.
  double place(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

class Canvas {
 public:
  Canvas(int columns, int rows)
      : columns_(columns), rows_(rows), cells_(std::size_t(columns * rows), 0) {}

  int width() const { return 2 * columns_; }
  int height() const { return 4 * rows_; }

  void dot(int x, int y) {
    // The bits of a Braille character, by column and row of its dots.
    constexpr unsigned char kBits[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
    cells_[std::size_t(y / 4 * columns_ + x / 2)] |= kBits[x % 2][y % 4];
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (int row = 0; row < rows_; ++row) {
      std::string& line = all.emplace_back();
      for (int column = 0; column < columns_; ++column) {
        const unsigned char cell = cells_[std::size_t(row * columns_ + column)];
        // U+2800 and the bits, in UTF-8.
        line += '\xe2';
        line += static_cast<char>(0xa0 | cell >> 6);
        line += static_cast<char>(0x80 | (cell & 0x3f));
      }
    }
    return all;
  }

 private:
  int columns_;
  int rows_;
  std::vector<unsigned char> cells_;
};

}  // namespace

std::vector<std::string> draw_chart(const std::vector<Curve>& curves, const ChartOptions& options) {
  Extent across, up;
  std::vector<Curve> logarithms;
  for (const Curve& curve : curves) {
    Curve& drawn = logarithms.emplace_back();
    for (const auto& [x, y] : curve) {
      if (!(x > 0) || !(y > 0)) continue;
      drawn.emplace_back(std::log(x), std::log(y));
      across.include(drawn.back().first);
      up.include(drawn.back().second);
    }
  }
  if (across.high < across.low) return {};
  Canvas canvas(options.columns, options.rows);
  const auto to_dot = [&](const std::pair<double, double>& point) {
    return std::pair(across.place(point.first) * (canvas.width() - 1),
                     (1 - up.place(point.second)) * (canvas.height() - 1));
  };
  for (const Curve& curve : logarithms)
    for (std::size_t i = 0; i < curve.size(); ++i) {
      const auto [x0, y0] = to_dot(curve[i]);
      const auto [x1, y1] = to_dot(curve[std::min(i + 1, curve.size() - 1)]);
      const int steps = 1 + int(std::max(std::fabs(x1 - x0), std::fabs(y1 - y0)));
      for (int step = 0; step <= steps; ++step) {
        const double share = double(step) / steps;
        canvas.dot(int(std::lround(x0 + (x1 - x0) * share)),
                   int(std::lround(y0 + (y1 - y0) * share)));
      }
    }
  return canvas.lines();
}

}  // namespace convoy
