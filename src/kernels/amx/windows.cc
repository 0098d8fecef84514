#include "kernels/amx/windows.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/check.h"

namespace convoy::amx {

Windows sliding_windows(const WindowSpec& s) {
  Windows w{.targets = s.out_height * s.out_width,
            .sources = s.height * s.width,
            .taps = s.kernel * s.kernel,
            .begin = {},
            .references = {}};
  for (int oy = 0; oy < s.out_height; ++oy) {
    for (int ox = 0; ox < s.out_width; ++ox) {
      w.begin.push_back(int(w.references.size()));
      for (int ky = 0; ky < s.kernel; ++ky) {
        for (int kx = 0; kx < s.kernel; ++kx) {
          const int y = oy * s.stride - s.padding + ky, x = ox * s.stride - s.padding + kx;
          if (y < 0 || y >= s.height || x < 0 || x >= s.width) continue;
          w.references.push_back({y * s.width + x, ky * s.kernel + kx});
        }
      }
    }
  }
  w.begin.push_back(int(w.references.size()));
  return w;
}

Windows whole_window(int positions) {
  Windows w{.targets = 1,
            .sources = positions,
            .taps = positions,
            .begin = {0, positions},
            .references = {}};
  for (int p = 0; p < positions; ++p) w.references.push_back({p, p});
  return w;
}

Windows adaptive_windows(int height, int width, int out_height, int out_width) {
  Windows w{.targets = out_height * out_width,
            .sources = height * width,
            .taps = height * width,
            .begin = {},
            .references = {}};
  for (int oy = 0; oy < out_height; ++oy) {
    for (int ox = 0; ox < out_width; ++ox) {
      w.begin.push_back(int(w.references.size()));
      int tap = 0;
      for (int y = oy * height / out_height; y < ((oy + 1) * height + out_height - 1) / out_height;
           ++y) {
        for (int x = ox * width / out_width; x < ((ox + 1) * width + out_width - 1) / out_width;
             ++x) {
          w.references.push_back({y * width + x, tap++});
        }
      }
    }
  }
  w.begin.push_back(int(w.references.size()));
  return w;
}

Windows inverse(const Windows& windows) {
  Windows w{.targets = windows.sources,
            .sources = windows.targets,
            .taps = windows.taps,
            .begin = std::vector<int>(windows.sources + 1, 0),
            .references = std::vector<Reference>(windows.references.size())};
  for (const Reference& r : windows.references) ++w.begin[r.source + 1];
  for (int t = 0; t < w.targets; ++t) w.begin[t + 1] += w.begin[t];
  std::vector<int> next(w.begin.begin(), w.begin.end() - 1);
  for (int t = 0; t < windows.targets; ++t) {
    for (int i = windows.begin[t]; i < windows.begin[t + 1]; ++i) {
      const Reference& r = windows.references[i];
      w.references[next[r.source]++] = {t, r.tap};
    }
  }
  return w;
}

namespace {

// The sources of the (up to four) positions of a target block, tap by tap, in ascending order of
// taps.
struct BlockTaps {
  std::vector<int> taps;
  std::vector<std::array<int, 4>> sources;  // a position, or -1
};

BlockTaps block_taps(const Windows& w, int block, int positions_per_block) {
  std::map<int, std::array<int, 4>> found;
  const int first = block * positions_per_block;
  for (int j = 0; j < positions_per_block && first + j < w.targets; ++j) {
    for (int i = w.begin[first + j]; i < w.begin[first + j + 1]; ++i) {
      auto [it, fresh] = found.try_emplace(w.references[i].tap, std::array{-1, -1, -1, -1});
      CHECK(it->second[j] < 0, "two sources for one tap");
      it->second[j] = w.references[i].source;
    }
  }
  BlockTaps result;
  for (const auto& [tap, sources] : found) {
    result.taps.push_back(tap);
    result.sources.push_back(sources);
  }
  return result;
}

class TilePlanner {
 public:
  explicit TilePlanner(int lot) : lot_(lot) {}

  void add(int tap, const std::array<int, 4>& sources) {
    TileStep step{.tap = tap, .row = {}};
    for (int half = 0; half < 2; ++half) {
      if (lot_ == 32) step.row[half] = sources[0] * 32 + half * 16;
      if (lot_ == 16) step.row[half] = sources[half] < 0 ? kZeroRows : sources[half] * 16;
      if (lot_ == 8) step.row[half] = eights(sources[2 * half], sources[2 * half + 1]);
    }
    plan.steps.push_back(step);
  }

  TilePlan plan;

 private:
  std::int32_t eights(int a, int b) {
    if (a < 0 && b < 0) return kZeroRows;
    if (a >= 0 && b == a + 1) return a * 8;
    const auto [it, fresh] = joins_.try_emplace({a, b}, int(plan.joins.size()));
    if (fresh) plan.joins.push_back({{a < 0 ? kZeroRows : a * 8, b < 0 ? kZeroRows : b * 8}});
    return -2 - it->second;
  }

  int lot_;
  std::map<std::pair<int, int>, int> joins_;
};

}  // namespace

TilePlan plan_tiles(const Windows& windows, int lot) {
  const int per_block = 32 / lot;
  TilePlanner planner(lot);
  for (int block = 0; block * per_block < windows.targets; ++block) {
    planner.plan.begin.push_back(int(planner.plan.steps.size()));
    const BlockTaps taps = block_taps(windows, block, per_block);
    for (std::size_t i = 0; i < taps.taps.size(); ++i) planner.add(taps.taps[i], taps.sources[i]);
  }
  planner.plan.begin.push_back(int(planner.plan.steps.size()));
  return std::move(planner.plan);
}

}  // namespace convoy::amx
