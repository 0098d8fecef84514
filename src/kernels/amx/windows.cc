#include "kernels/amx/windows.h"

#include <algorithm>
#include <map>

namespace convoy::amx {

namespace {

// The next row of targets reads what is `stride` taps below.
std::vector<std::vector<int>> column_runs(int kernel, int stride) {
  std::vector<std::vector<int>> runs;
  for (int kx = 0; kx < kernel; ++kx) {
    for (int first = 0; first < std::min(stride, kernel); ++first) {
      runs.emplace_back();
      for (int ky = first; ky < kernel; ky += stride) runs.back().push_back(ky * kernel + kx);
    }
  }
  return runs;
}

}  // namespace

Windows sliding_windows(const WindowSpec& s) {
  Windows w{.targets = s.out_height * s.out_width,
            .sources = s.height * s.width,
            .taps = s.kernel * s.kernel,
            .target_width = s.out_width,
            .source_width = s.width,
            .begin = {},
            .references = {},
            .runs = column_runs(s.kernel, s.stride)};
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
            .references = {},
            .runs = {}};
  for (int p = 0; p < positions; ++p) w.references.push_back({p, p});
  return w;
}

Windows adaptive_windows(int height, int width, int out_height, int out_width) {
  Windows w{.targets = out_height * out_width,
            .sources = height * width,
            .taps = height * width,
            .begin = {},
            .references = {},
            .runs = {}};
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
            .target_width = windows.source_width,
            .source_width = windows.target_width,
            .begin = std::vector<int>(windows.sources + 1, 0),
            .references = std::vector<Reference>(windows.references.size()),
            .runs = windows.runs};
  for (std::vector<int>& run : w.runs) std::reverse(run.begin(), run.end());
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

class TilePlanner {
 public:
  TilePlanner(const Windows& windows, int lot) : windows_(&windows), lot_(lot) {
    if (windows.runs.empty()) {
      for (int tap = 0; tap < windows.taps; ++tap) runs_.push_back({tap});
    } else {
      runs_ = windows.runs;
    }
  }

  // Of two target tiles; what lies behind the last target is padding.
  void add_block(int first, int second) {
    plan_.blocks.push_back({{first * 16, second * 16}, int(plan_.runs.size())});
    for (int half = 0; half < 2; ++half) find_rows(half == 0 ? first : second, rows_[half]);
    for (const std::vector<int>& run : runs_) add_run(run);
  }

  // Tiles that lie together.
  void add_span(int first, int last) {
    for (int tile = first; tile < last; tile += 2) add_block(tile, tile + 1);
  }

  TilePlan finish() {
    plan_.blocks.push_back({{0, 0}, int(plan_.runs.size())});
    plan_.runs.push_back({.steps = int(plan_.steps.size()), .full = 0});
    return std::move(plan_);
  }

  std::size_t loads() const { return loads_; }

 private:
  void add_run(const std::vector<int>& run) {
    TileRun added{.steps = int(plan_.steps.size()), .full = 1};
    for (const int tap : run) {
      TileStep step{.tap = tap, .row = {rows_[0][tap], rows_[1][tap]}, .held = 0};
      const bool first = int(plan_.steps.size()) == added.steps;
      if (step.row[0] == kZeroRows && step.row[1] == kZeroRows) continue;
      if (!first && step.row[0] != kZeroRows && step.row[0] == plan_.steps.back().row[1])
        step.held = 1;
      if (step.row[0] < 0 || step.row[1] < 0 || (!first && !step.held)) added.full = 0;
      loads_ += 2 + (step.row[0] != kZeroRows && !step.held) + (step.row[1] != kZeroRows);
      plan_.steps.push_back(step);
    }
    if (int(plan_.steps.size()) > added.steps) plan_.runs.push_back(added);
  }

  // Which rows a target tile reads by each tap.
  void find_rows(int tile, std::vector<std::int32_t>& rows) {
    rows.assign(windows_->taps, kZeroRows);
    if (lot_ == 8) {
      std::vector<int> sources[2];
      for (int j = 0; j < 2; ++j) {
        sources[j].assign(windows_->taps, -1);
        for_references(tile * 2 + j, [&](const Reference& r) { sources[j][r.tap] = r.source; });
      }
      for (int tap = 0; tap < windows_->taps; ++tap)
        rows[tap] = eights(sources[0][tap], sources[1][tap]);
    } else {
      const int tiles = lot_ / 16;  // of a position
      for_references(tile / tiles, [&](const Reference& r) {
        rows[r.tap] = r.source * lot_ + tile % tiles * 16;
      });
    }
  }

  template <class Use>
  void for_references(int target, Use use) const {
    if (target >= windows_->targets) return;
    for (int i = windows_->begin[target]; i < windows_->begin[target + 1]; ++i)
      use(windows_->references[i]);
  }

  std::int32_t eights(int a, int b) {
    if (a < 0 && b < 0) return kZeroRows;
    if (a >= 0 && b == a + 1) return a * 8;
    const auto [it, fresh] = joins_.try_emplace({a, b}, int(plan_.joins.size()));
    if (fresh) plan_.joins.push_back({{a < 0 ? kZeroRows : a * 8, b < 0 ? kZeroRows : b * 8}});
    return -2 - it->second;
  }

  const Windows* windows_;
  int lot_;
  std::vector<std::vector<int>> runs_;
  std::vector<std::int32_t> rows_[2];  // by tap, of both tiles
  std::map<std::pair<int, int>, int> joins_;
  std::size_t loads_ = 0;
  TilePlan plan_;
};

// Pairs rows of the map that are `apart`; what is left at the end as it lies.
TilePlanner plan_rows(const Windows& windows, int lot, int tiles, int row_tiles, int apart) {
  TilePlanner planner(windows, lot);
  int first = 0;
  for (; first + 2 * apart * row_tiles <= tiles; first += 2 * apart * row_tiles)
    for (int tile = first; tile < first + apart * row_tiles; ++tile)
      planner.add_block(tile, tile + apart * row_tiles);
  planner.add_span(first, tiles);
  return planner;
}

}  // namespace

TilePlan plan_tiles(const Windows& windows, int lot) {
  const int tiles = (windows.targets * lot + 15) / 16;
  TilePlanner best(windows, lot);
  best.add_span(0, tiles);
  if (windows.target_width * lot % 16 == 0) {
    for (const int apart : {1, 2}) {
      TilePlanner planner = plan_rows(windows, lot, tiles, windows.target_width * lot / 16, apart);
      if (planner.loads() < best.loads()) best = std::move(planner);
    }
  }
  return best.finish();
}

}  // namespace convoy::amx
