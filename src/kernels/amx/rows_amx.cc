// Elementwise kernels over whole values: [rows][32 channels] of bf16, padding included (zero stays
// zero).
#include "kernels/amx/lanes.h"
#include "kernels/amx/rows.h"

namespace convoy::amx {

namespace {

constexpr std::size_t kGrain = 512;  // rows worth a thread

template <typename Body>
void for_rows(const Layout& l, Body&& body) {
  parallel_for(l.size() / kLanes, kGrain, [&](std::size_t first, std::size_t last) {
    for (std::size_t at = first * kLanes; at < last * kLanes; at += kLanes) body(at);
  });
}

CONVOY_INLINE Numbers relu(Numbers v) { return largest(v, zero_numbers()); }

}  // namespace

// The sign bit of a bf16 is that of the 16-bit number, so that ReLU is a maximum of whole numbers.
void relu_forward(const Layout& l, const Bf16* x, Bf16* y) {
  for_rows(l, [&](std::size_t at) { store(y + at, relu(load(x + at))); });
}

void relu_backward(const Layout& l, const Bf16* y, const Bf16* gradient, Bf16* to) {
  for_rows(l, [&](std::size_t at) {
    store(to + at, keep(positive(load(y + at)), load(gradient + at)));
  });
}

void add_values(const Layout& l, const Bf16* a, const Bf16* b, bool with_relu, Bf16* y) {
  const Row floor = same_row(with_relu ? 0.0f : -__builtin_inff());
  for_rows(l, [&](std::size_t at) {
    store(y + at, narrow(largest(load_row(a + at) + load_row(b + at), floor)));
  });
}

void scale_where(const Layout& l, const std::uint32_t* bits, float scale, const Bf16* x, Bf16* y) {
  const Row factor = same_row(scale);
  for_rows(l, [&](std::size_t at) {
    store(y + at, narrow(keep(bits[at / kLanes], load_row(x + at) * factor)));
  });
}

void regroup(const Layout& l, const std::int32_t* begin, const LanePiece* pieces,
             const SourceValue* sources, Bf16* value) {
  alignas(64) std::uint16_t count[32];
  for (int i = 0; i < 32; ++i) count[i] = std::uint16_t(i);
  const Numbers lane = load(count);
  const std::size_t size = l.plane_size();
  for_pieces(l, [&](int, int lot, int plane, int first, int last) {
    Bf16* to = value + block_at(l, lot, plane, first);
    const std::size_t count_rows = std::size_t(last - first) * 32;
    for (std::int32_t i = begin[plane]; i < begin[plane + 1]; ++i) {
      const LanePiece& piece = pieces[i];
      const SourceValue& source = sources[piece.source];
      const Bf16* from = source.value + (std::size_t(lot) * source.planes + piece.plane) * size +
                         std::size_t(first) * kBlock;
      const Numbers from_lane = minus(lane, same_numbers(piece.rotate));
      const bool fresh = i == begin[plane];
      for (std::size_t r = 0; r < count_rows; ++r) {
        const Numbers moved = pick(piece.lanes, from_lane, load(from + r * kLanes));
        store(to + r * kLanes, fresh ? moved : either(moved, load(to + r * kLanes)));
      }
    }
  });
}

}  // namespace convoy::amx
