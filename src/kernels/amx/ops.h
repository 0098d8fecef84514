// The layers of this family as Ops, and what they share.
#pragma once

#include <memory>

#include "kernels/amx/layout.h"
#include "kernels/amx/making.h"
#include "kernels/family.h"

namespace convoy::amx {

// All but products expect values of this family as inputs and output (spec.first and spec.last are
// for `make_bridge`).
std::unique_ptr<Op> make_product(const OpSpec& spec);  // Convolution, Dense; takes plain input
                                                       // where first, plain logits where last
std::unique_ptr<StoredLayout> make_product_weights(const OpSpec& spec);
std::unique_ptr<Op> make_norm(
    const OpSpec& spec);  // BatchNorm; a second input is added before the ReLU
std::unique_ptr<Op> make_pool(const OpSpec& spec);  // MaxPool, AveragePool, AdaptiveAveragePool
std::unique_ptr<Op> make_relu(const OpSpec& spec);
std::unique_ptr<Op> make_add(const OpSpec& spec);
std::unique_ptr<Op> make_dropout(const OpSpec& spec);
std::unique_ptr<Op> make_concat(const OpSpec& spec);
std::unique_ptr<Op> make_local_response_norm(const OpSpec& spec);

// Whether make_product does the conversion itself.
bool reads_plain_input(const OpSpec& spec);
bool writes_plain_logits(const OpSpec& spec);
// Wraps an op that expects values: converts the network's plain input before it, its output to
// plain logits behind it.
std::unique_ptr<Op> make_bridge(const OpSpec& spec, std::unique_ptr<Op> inner);

inline Layout layout_of(const Shape& shape, int batch) {
  return make_layout(batch, shape.channels, int(shape.area()));
}
inline const Bf16* value(const std::byte* p) { return reinterpret_cast<const Bf16*>(p); }
inline Bf16* value(std::byte* p) { return reinterpret_cast<Bf16*>(p); }
// Every op that writes a value says so, unless it leaves sums.
inline void leave_no_sums(const Layout& layout, std::byte* output) {
  layout.trailer(value(output))->valid = 0;
}

// What a norm leaves to do for the layer that reads its value or its input's gradient next, where
// there is room for it: a Making, and behind it the lanes that it names.
inline std::size_t left_bytes(const Layout& layout) {
  return sizeof(Making) + std::size_t(3) * layout.lanes() * sizeof(float);
}
inline const Making* making(const std::byte* left) { return reinterpret_cast<const Making*>(left); }

// Room for partial sums of a value and its product with another, see Layout::partials; the sums
// come in front, [2][lanes] of double.
inline std::size_t sums_bytes(const Layout& layout) {
  return std::size_t(layout.partials()) * 2 * layout.lanes() * sizeof(double);
}

// Cuts a buffer into pieces of 64-byte alignment.
class Cutter {
 public:
  std::size_t take(std::size_t bytes) {
    const std::size_t at = size_;
    size_ += (bytes + 63) / 64 * 64;
    return at;
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

}  // namespace convoy::amx
