// Tile products with an interleaved finish. A target block (32 rows x 32 channels) is four
// accumulator tiles; while the tiles of one block are multiplied, the rows of the block before it
// are finished and stored, so that vector work hides behind tile work. Layouts: product.h.
#include "kernels/amx/finish.h"
#include "kernels/amx/maker.h"
#include "kernels/amx/product.h"
#include "kernels/amx/rows.h"
#include "kernels/amx/tiles.h"

namespace convoy::amx {

namespace {

alignas(64) const Bf16 kZeroTile[512] = {};

// Where the tiles of a block lie in a source plane.
struct TileRows {
  const Bf16* plane;
  const TileJoin* joins;
  Bf16*
      joined;  // room for two tiles: what one of them was loaded from stays until it is multiplied

  template <int kTile>
  inline __attribute__((always_inline)) const Bf16* at(std::int32_t row) const {
    if (row >= 0) return plane + std::size_t(row) * kLanes;
    return join(joins[-2 - row], joined + (kTile - 4) * 512);
  }

  const Bf16* join(const TileJoin& parts, Bf16* to) const {
    for (int half = 0; half < 2; ++half) {
      const Bf16* from =
          parts.row[half] < 0 ? kZeroTile : plane + std::size_t(parts.row[half]) * kLanes;
      for (int r = 0; r < 8; ++r) store(to + (half * 8 + r) * kLanes, load(from + r * kLanes));
    }
    return to;
  }
};

// Tiles 0 to 3 accumulate (first 16 rows x channels 0-15, x 16-31, second 16 rows x 0-15, ...), 4
// and 5 hold rows of the source, 6 and 7 weights. Source tiles are streamed past the first-level
// cache; weights too where they do not fit it. The tile of the second rows may serve the next step
// for the first: kFirst and kSecond change places from step to step.
template <int kFirst, int kSecond, bool kStreamWeights>
CONVOY_INLINE void multiply(const TileStep& step, const TileRows& rows, const Bf16* w) {
  const bool first = step.row[0] != kZeroRows, second = step.row[1] != kZeroRows;
  if (first && !step.held) load_tile<kFirst, true>(rows.at<kFirst>(step.row[0]));
  load_tile<6, kStreamWeights>(w);
  if (second) load_tile<kSecond, true>(rows.at<kSecond>(step.row[1]));
  load_tile<7, kStreamWeights>(w + 512);
  if (first) multiply_by_both<0, kFirst>();
  if (second) multiply_by_both<2, kSecond>();
}

// A step of a full run, whose first rows are in their tile.
template <int kFirst, int kSecond, bool kStreamWeights>
CONVOY_INLINE void multiply_full(const Bf16* second, const Bf16* w) {
  load_tile<6, kStreamWeights>(w);
  load_tile<kSecond, true>(second);
  load_tile<7, kStreamWeights>(w + 512);
  multiply_block<kFirst, kSecond>();
}

// The block whose sums wait to be finished.
struct Waiting {
  const float* sums = nullptr;
  std::size_t at[2] = {};  // in the target: of rows 0 to 15 and, less 16 rows, of the others
  std::uint32_t rows = 0;
  int lot = 0;
  int row = 32;  // next one to finish
};

template <Finish::Kind kKind>
CONVOY_INLINE void finish_next_row(Finisher<kKind>& finisher, Waiting& w) {
  const int n = w.row++;
  finisher.finish(load_row(w.sums + n * 32), w.at[n >> 4] + n * kLanes, w.rows >> n & 1,
                  w.lot * finisher.layout->lot + n);
}

// Hands over a plane's sums since target block `from`, which lie within one piece; with what an
// earlier call left there, unless the piece begins at that block.
template <Finish::Kind kKind>
void hand_over(Finisher<kKind>& finisher, std::size_t from, double* partial) {
  const Layout& l = *finisher.layout;
  const int block = int(from % l.blocks), piece = l.piece_of(block);
  finisher.hand_over(partial + (from / l.blocks * l.pieces + piece) * 2 * l.lanes(),
                     block == l.piece_begin(piece));
}

// What a call works on.
struct Call {
  const TileProduct& p;
  const Bf16* source;
  const Bf16* pack;
  Bf16* target;
  const Finish& f;
  const SourceMaking& making;
};

// Where the rows of a lot's planes are.
struct SourceView {
  const Bf16* base;
  std::size_t plane, lot;  // from one to the next
};

// The weights of the next target plane, asked for while this plane's products run.
struct Prefetch {
  const char* next;
  const char* end;
  int lines_per_product;

  void advance() {
    for (int i = 0; i < lines_per_product && next < end; ++i, next += 64)
      _mm_prefetch(next, _MM_HINT_T1);
  }
};

int steps_of(const TileProduct& p, int first_block, int last_block) {
  return p.runs[p.blocks[last_block].runs].steps - p.runs[p.blocks[first_block].runs].steps;
}

Prefetch prefetch_after(const Call& call, int plane, std::size_t blocks) {
  const std::size_t bytes = std::size_t(call.p.taps) * call.p.source.planes * kBlock * sizeof(Bf16);
  const std::size_t products = std::size_t(steps_of(call.p, 0, call.p.target.blocks)) *
                               call.p.source.planes * blocks / call.p.target.blocks;
  const char* next = reinterpret_cast<const char*>(call.pack) + (plane + 1) * bytes;
  return {.next = next,
          .end = plane + 1 < call.p.target.planes ? next + bytes : next,
          .lines_per_product = int(bytes / 64 / (products + 1) + 1)};
}

Waiting wait_for(const TileProduct& p, const float* sums, int lot, int plane,
                 const TileBlock& block) {
  const std::size_t from = block_at(p.target, lot, plane, 0);
  const auto rows = [&](std::int32_t row) {
    return p.target.rows(lot, row / 32) >> row % 32 & 0xffffu;
  };
  return {.sums = sums,
          .at = {from + std::size_t(block.row[0]) * kLanes,
                 from + std::size_t(block.row[1]) * kLanes - 16 * kLanes},
          .rows = rows(block.row[0]) | rows(block.row[1]) << 16,
          .lot = lot,
          .row = 0};
}

// Target blocks [first, last) of the plan, counted over all lots, of one plane.
template <Finish::Kind kKind, bool kStreamWeights>
void product_span(const Call& call, const SourceView& view, std::size_t first, std::size_t last,
                  int plane) {
  const TileProduct& p = call.p;
  alignas(64) float sums[2][kBlock];
  alignas(64) Bf16 joined[2 * 512];
  TileRows rows{.plane = nullptr, .joins = p.joins, .joined = joined};
  using Finishes = Finisher<kKind>;
  Finishes finisher(p.target, call.f, plane, call.target);
  const int in_planes = p.source.planes;
  const Bf16* weights = call.pack + std::size_t(plane) * p.taps * in_planes * kBlock;
  const std::size_t tap_size = std::size_t(in_planes) * kBlock;
  Prefetch prefetch = prefetch_after(call, plane, last - first);
  Waiting waiting;
  std::size_t summed_from = first;
  for (std::size_t v = first; v < last; ++v) {
    const int lot = int(v / p.target.blocks), block = int(v % p.target.blocks);
    const Bf16* x = view.base + lot * view.lot;
    const int products = steps_of(p, block, block + 1) * in_planes;
    const int rows_per_product = products >= 32 ? 1
                                 : products > 0 ? (32 + products - 1) / products
                                                : 32;
    const auto finish_rows = [&] {
      if (kStreamWeights) prefetch.advance();
      for (int r = 0; r < rows_per_product && waiting.row < 32; ++r)
        finish_next_row(finisher, waiting);
    };
    float* c = sums[v & 1];
    begin_block(c, true);
    for (int r = p.blocks[block].runs; r < p.blocks[block + 1].runs; ++r) {
      const TileStep* const begin = p.steps + p.runs[r].steps;
      const TileStep* const end = p.steps + p.runs[r + 1].steps;
      rows.plane = x;
      const Bf16* w = weights;
      for (int i = 0; i < in_planes; ++i, w += kBlock, rows.plane += view.plane) {
        limit_pairs((p.source.lanes_in(i) + 1) / 2);
        const TileStep* step = begin;
        if (p.runs[r].full) {
          load_tile<4, true>(rows.plane + std::size_t(step->row[0]) * kLanes);
          for (;;) {
            multiply_full<4, 5, kStreamWeights>(rows.plane + std::size_t(step->row[1]) * kLanes,
                                                w + step->tap * tap_size);
            finish_rows();
            if (++step == end) break;
            multiply_full<5, 4, kStreamWeights>(rows.plane + std::size_t(step->row[1]) * kLanes,
                                                w + step->tap * tap_size);
            finish_rows();
            if (++step == end) break;
          }
        } else {
          for (;;) {
            multiply<4, 5, kStreamWeights>(*step, rows, w + step->tap * tap_size);
            finish_rows();
            if (++step == end) break;
            multiply<5, 4, kStreamWeights>(*step, rows, w + step->tap * tap_size);
            finish_rows();
            if (++step == end) break;
          }
        }
      }
    }
    while (waiting.row < 32) finish_next_row(finisher, waiting);
    if (Finishes::kSums && block == p.target.piece_begin(p.target.piece_of(block)) && v > first) {
      hand_over(finisher, summed_from, call.f.partial);
      summed_from = v;
    }
    end_block(c);
    waiting = wait_for(p, c, lot, plane, p.blocks[block]);
  }
  while (waiting.row < 32) finish_next_row(finisher, waiting);
  if (Finishes::kSums) hand_over(finisher, summed_from, call.f.partial);
}

// Target blocks whose source rows stay in the second-level cache while every target plane passes
// over them.
std::size_t chunk_blocks(const TileProduct& p) {
  const double bytes_per_block = double(p.source.lot_size()) / p.target.blocks * sizeof(Bf16);
  const auto chunk = std::size_t(512e3 / bytes_per_block);
  return chunk < 4 ? 4 : chunk;
}

// Where a thread's share of all target blocks begins: with a piece, if sums are taken.
std::size_t share_begin(const Layout& l, bool by_piece, int thread, int team) {
  if (!by_piece) return share(std::size_t(l.lots) * l.blocks, thread, team);
  const std::size_t at = share(l.partials(), thread, team);
  return at / l.pieces * l.blocks + l.piece_begin(int(at % l.pieces));
}

// The chunk that begins with block `at`, made of columns in a buffer of the thread's own.
SourceView make_columns(const TileProduct& p, std::size_t at, std::size_t end, int thread) {
  const std::size_t chunk = chunk_blocks(p);
  Bf16* buffer = p.column_buffers + thread * chunk * p.source.planes * kBlock;
  const int lot = int(at / p.target.blocks), first = int(at % p.target.blocks);
  for (std::size_t b = 0; b < end - at; ++b) {
    fill_columns(*p.columns, p.source, lot, (first + int(b)) * kLanes, buffer + b * kBlock,
                 chunk * kBlock);
  }
  return {.base = buffer - std::size_t(first) * kBlock, .plane = chunk * kBlock, .lot = 0};
}

template <Finish::Kind kKind, bool kStreamWeights>
void product_of_kind(const Call& call) {
  const TileProduct& p = call.p;
  const std::size_t total = std::size_t(p.target.lots) * p.target.blocks, chunk = chunk_blocks(p);
  const std::size_t weight_bytes =
      std::size_t(p.taps) * p.source.planes * p.target.planes * kBlock * sizeof(Bf16);
  const bool by_plane = !p.columns && (total < 2 || weight_bytes > p.source.size() * sizeof(Bf16));
  run_team(p.slots, [&](int thread, int team) {
    configure_full_tiles();
    const bool split_planes = by_plane && p.target.planes >= team;
    constexpr bool kByPiece = Finisher<kKind>::kSums;
    const std::size_t first = split_planes ? 0 : share_begin(p.target, kByPiece, thread, team);
    const std::size_t last =
        split_planes ? total : share_begin(p.target, kByPiece, thread + 1, team);
    const int first_plane = split_planes ? int(share(p.target.planes, thread, team)) : 0;
    const int last_plane =
        split_planes ? int(share(p.target.planes, thread + 1, team)) : p.target.planes;
    Maker maker(p.source, call.making);
    by_plane ? maker.make_share(thread, team) : maker.begin(first, last);
    std::size_t end;
    for (std::size_t at = first; at < last; at = end) {
      end = (at / chunk + 1) * chunk;  // the same chunks for any number of threads
      if (end > last) end = last;
      SourceView view{
          .base = call.source, .plane = p.source.plane_size(), .lot = p.source.lot_size()};
      if (p.columns) {
        const std::size_t lot_end = (at / p.target.blocks + 1) * p.target.blocks;
        if (lot_end < end) end = lot_end;
        view = make_columns(p, at, end, thread);
      }
      maker.make_for(end);
      for (int plane = first_plane; plane < last_plane; ++plane) {
        product_span<kKind, kStreamWeights>(call, view, at, end, plane);
      }
    }
    release_tiles();
  });
}

// Only tiles of the CPU are loaded in two ways: others need no code for both.
template <Finish::Kind kKind>
void product_of_size(const Call& call) {
#if defined(CONVOY_ON_AVX2) || defined(CONVOY_ON_AVX512)
  product_of_kind<kKind, true>(call);
#else
  const bool fits =
      std::size_t(call.p.taps) * call.p.source.planes * kBlock * sizeof(Bf16) <= 40 << 10;
  fits ? product_of_kind<kKind, false>(call) : product_of_kind<kKind, true>(call);
#endif
}

}  // namespace

std::size_t column_buffer_size(const TileProduct& p) {
  return chunk_blocks(p) * p.source.planes * kBlock * p.slots;
}

void run_product(const TileProduct& p, const Bf16* source, const Bf16* pack, Bf16* target,
                 const Finish& f, const SourceMaking& making) {
  const Call call{
      .p = p, .source = source, .pack = pack, .target = target, .f = f, .making = making};
  switch (f.kind) {
    case Finish::plain:
      return product_of_size<Finish::plain>(call);
    case Finish::add:
      return product_of_size<Finish::add>(call);
    case Finish::bias:
      return product_of_size<Finish::bias>(call);
    case Finish::norm_sums:
      product_of_size<Finish::norm_sums>(call);
      return add_partials(p.target, 2 * p.target.lanes(), f.partial);
    case Finish::logits:
      return product_of_size<Finish::logits>(call);
    case Finish::gradient:
      product_of_size<Finish::gradient>(call);
      return add_partials(p.target, 2 * p.target.lanes(), f.partial);
  }
}

}  // namespace convoy::amx
