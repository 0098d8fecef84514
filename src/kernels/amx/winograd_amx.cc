// Convolution by Winograd's algorithm, forward and to the data. Layouts: winograd.h.
#include "kernels/amx/finish.h"
#include "kernels/amx/maker.h"
#include "kernels/amx/rows.h"
#include "kernels/amx/turn.h"
#include "kernels/amx/winograd_points.h"

namespace convoy::amx {

namespace {

PointRows source_rows(const WinogradProduct& p) { return {p.kChunkRows, p.source.lanes()}; }
PointRows target_rows(const WinogradProduct& p) { return {p.kChunkRows, p.target.lanes()}; }
std::size_t slot_size(const WinogradProduct& p) {
  return source_rows(p).size() + target_rows(p).size();
}

void round_block(const float* from, float* to) {
  for (int r = 0; r < 32; ++r)
    store_row(to + r * kLanes, widen(narrow(load_row(from + r * kLanes))));
}

// [32][32] transposed.
void turn_block(const float* from, float* to) {
  const auto* numbers = reinterpret_cast<const Bf16*>(from);
  auto* turned = reinterpret_cast<Bf16*>(to);
  Numbers r[16];
  for (int high = 0; high < 2; ++high) {
    for (int right = 0; right < 2; ++right) {
      for (int i = 0; i < 16; ++i) r[i] = load(numbers + ((high * 16 + i) * 32 + right * 16) * 2);
      transpose_words(r);
      for (int i = 0; i < 16; ++i) store(turned + ((right * 16 + i) * 32 + high * 16) * 2, r[i]);
    }
  }
}

// The products of rows at their points back to outputs, of which those within the map are finished.
template <Finish::Kind kKind>
void from_points(const WinogradProduct& p, const float* points, const PointRows& table, int first,
                 int last, int plane, Bf16* target, const Finish& f, double* sums) {
  const Layout& l = p.target;
  Finisher<kKind> finisher(l, f, plane, target);
  points += plane * kLanes;
  for (int row = first; row < last; row += kGroup) {
    const Group group(p, row);
    const int down = p.out_height - group.y < kTileSide ? p.out_height - group.y : kTileSide;
    const int across = p.out_width - group.x < kTileSide ? p.out_width - group.x : kTileSide;
    const std::size_t tile =
        block_at(l, group.lot, plane, 0) +
        ((std::size_t(group.y) * p.out_width + group.x) * l.lot + group.image) * kLanes;
    for (int n = 0; n < kGroup; ++n, points += table.row) {
      Row half[kTileSide * kSide];
#pragma GCC unroll 6
      for (int j = 0; j < kSide; ++j) {
        Row line[kSide];
#pragma GCC unroll 6
        for (int i = 0; i < kSide; ++i) line[i] = load_row(points + (i * kSide + j) * table.point);
        winograd::transform_products<RowVector, kTileSide>(line, 1, half + j, kSide);
      }
      const int image = group.lot * l.lot + group.image + n;
      for (int i = 0; i < down; ++i) {
        Row line[kTileSide];
        winograd::transform_products<RowVector, kTileSide>(half + i * kSide, 1, line, 1);
        const std::size_t at = tile + (std::size_t(i) * p.out_width * l.lot + n) * kLanes;
#pragma GCC unroll 4
        for (int j = 0; j < kTileSide; ++j)
          if (j < across)
            finisher.finish(line[j], at + std::size_t(j) * l.lot * kLanes, image < l.batch, image);
      }
    }
  }
  if (Finisher<kKind>::kSums) finisher.hand_over(sums, true);
}

// Rows beyond the map are zero in every value.
void clear_beyond(const Layout& l, Bf16* value) {
  const int first = l.positions * l.lot, last = l.blocks * 32;
  for (int plane = 0; first < last && plane < l.lots * l.planes; ++plane) {
    Bf16* rows = value + plane * l.plane_size();
    for (int row = first; row < last; ++row)
      store(rows + std::size_t(row) * kLanes, zero_numbers());
  }
}

// One for each chunk, behind all slots.
double* sums_of(const WinogradProduct& p, float* scratch) {
  return reinterpret_cast<double*>(scratch + slot_size(p) * p.slots);
}

void add_chunks(const WinogradProduct& p, const double* sums, double* to) {
  const std::size_t width = 2 * std::size_t(p.target.lanes());
  const int chunks = p.chunks();
  parallel_for(width, 64, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      double sum = 0;
      for (int chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk * width + i];
      to[i] = sum;
    }
  });
}

template <Finish::Kind kKind>
void run_kind(const WinogradProduct& p, const Bf16* source, const float* weights, Bf16* target,
              const Finish& f, float* scratch, const SourceMaking& making) {
  const PointRows from = source_rows(p), to = target_rows(p);
  const PointWeights w(p.source.planes, p.target.planes);
  const int chunks = p.chunks();
  double* sums = sums_of(p, scratch);
  run_team(p.slots, [&](int thread, int team) {
    float* values = scratch + slot_size(p) * thread;
    float* products = values + from.size();
    const int first_chunk = int(share(chunks, thread, team)),
              last_chunk = int(share(chunks, thread + 1, team));
    Maker maker(p.source, making);
    maker.begin(first_chunk, last_chunk);
    for (int chunk = first_chunk; chunk < last_chunk; ++chunk) {
      const int first = chunk * p.kChunkRows;
      const int last = first + p.kChunkRows < p.rows() ? first + p.kChunkRows : p.rows();
      maker.make_for(chunk + 1);
      to_points<kSide, winograd::transform_source<RowVector>>(
          p, p.source, p.height, p.width, p.before, source, first, last, from, values);
      for (int point = 0; point < kPoints; ++point) {
        for (int plane = 0; plane < p.target.planes; ++plane) {
          multiply_panel({.left = values + point * from.point,
                          .left_row = from.row,
                          .left_step = 1,
                          .right = weights + point * w.point + w.at(plane, 0),
                          .right_step = kLanes,
                          .sums = products + point * to.point + plane * kLanes,
                          .sums_row = to.row},
                         last - first, w.inner, false);
        }
      }
      for (int plane = 0; plane < p.target.planes; ++plane)
        from_points<kKind>(p, products, to, first, last, plane, target, f,
                           sums + std::size_t(chunk) * 2 * p.target.lanes());
    }
  });
  clear_beyond(p.target, target);
  if (Finisher<kKind>::kSums) add_chunks(p, sums, f.partial);
}

}  // namespace

std::size_t winograd_weights_size(const WeightShape& shape) {
  return PointWeights(shape.in_planes, shape.out_planes).size();
}

void make_winograd_weights(const WeightShape& s, const float* stored, bool backward, float* to) {
  const int inner_planes = backward ? s.out_planes : s.in_planes;
  const PointWeights w(inner_planes, backward ? s.in_planes : s.out_planes);
  constexpr int kTaps = 9;
  parallel_for(
      std::size_t(s.in_planes) * s.out_planes, 1, [&](std::size_t first, std::size_t last) {
        alignas(64) float taps[kTaps][kBlock];
        alignas(64) float rounded[kBlock];
        for (std::size_t pair = first; pair < last; ++pair) {
          const int outer = int(pair / inner_planes), inner = int(pair % inner_planes);
          const std::size_t in = backward ? outer : inner, out = backward ? inner : outer;
          for (int tap = 0; tap < kTaps; ++tap) {
            const float* from = stored + ((tap * s.in_planes + in) * s.out_planes + out) * kBlock;
            round_block(from, backward ? rounded : taps[tap]);
            if (backward) turn_block(rounded, taps[kTaps - 1 - tap]);
          }
          for (int channel = 0; channel < kLanes; ++channel) {
            Row line[3], half[kSide * 3], points[kSide];
            for (int j = 0; j < 3; ++j) {
              for (int i = 0; i < 3; ++i) line[i] = load_row(taps[i * 3 + j] + channel * kLanes);
              winograd::transform_weights<RowVector, 3>(line, 1, half + j, 3);
            }
            float* row = to + w.at(outer, inner * kLanes + channel);
            for (int i = 0; i < kSide; ++i) {
              winograd::transform_weights<RowVector, 3>(half + i * 3, 1, points, 1);
              for (int j = 0; j < kSide; ++j) store_row(row + (i * kSide + j) * w.point, points[j]);
            }
          }
        }
      });
}

std::size_t winograd_scratch_size(const WinogradProduct& p) {
  return slot_size(p) * p.slots + std::size_t(p.chunks()) * 2 * p.target.lanes() * 2;
}

void run_winograd(const WinogradProduct& p, const Bf16* source, const float* weights, Bf16* target,
                  const Finish& f, float* scratch, const SourceMaking& making) {
  switch (f.kind) {
    case Finish::plain:
      return run_kind<Finish::plain>(p, source, weights, target, f, scratch, making);
    case Finish::logits:
      __builtin_trap();  // of dense layers only
    case Finish::add:
      return run_kind<Finish::add>(p, source, weights, target, f, scratch, making);
    case Finish::bias:
      return run_kind<Finish::bias>(p, source, weights, target, f, scratch, making);
    case Finish::norm_sums:
      return run_kind<Finish::norm_sums>(p, source, weights, target, f, scratch, making);
    case Finish::gradient:
      return run_kind<Finish::gradient>(p, source, weights, target, f, scratch, making);
  }
}

}  // namespace convoy::amx
