// A line chart in the terminal, of Braille characters: each holds two by four dots.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace convoy {

using Curve = std::vector<std::pair<double, double>>;

struct ChartOptions {
  int columns = 60;
  int rows = 12;
};

// The curves over logarithmic axes, points joined by lines; points that are not positive are left
// out. Lines of the same length, without labels. Empty where there is nothing to draw.
std::vector<std::string> draw_chart(const std::vector<Curve>& curves, const ChartOptions& options);

}  // namespace convoy
