#include "kernels/amx/winograd.h"

namespace convoy::amx {

namespace {

// How many times faster than f32 this build multiplies bf16.
#if defined(CONVOY_ON_AVX2)
constexpr double kSpeed = 1;
#elif defined(CONVOY_ON_AVX512)
constexpr double kSpeed = 2;
#else
constexpr double kSpeed = 12;
#endif

// An output of a tile is made of all inputs of the tile: with few channels one that is small beside
// the others would lose digits, and gradients of inputs that nobody reads would not be zero.
bool stays_exact(const WinogradProduct& p) {
  return p.source.channels >= kLanes && p.target.channels >= kLanes &&
         p.out_height + 2 - p.before >= p.height && p.out_width + 2 - p.before >= p.width;
}

}  // namespace

WinogradProduct winograd_backward(const WinogradProduct& forward) {
  return {.source = forward.target,
          .target = forward.source,
          .height = forward.out_height,
          .width = forward.out_width,
          .out_height = forward.height,
          .out_width = forward.width,
          .before = 2 - forward.before,
          .slots = forward.slots};
}

// In products of f32 for 16 channels of the target: a number that goes to or comes from a point
// takes as long as kNumber of them, a weight as long as kWeight.
bool winograd_pays(const WinogradProduct& p) {
  if (p.before > 2 || p.out_height < 4 || p.out_width < 4 || !stays_exact(p)) return false;
  constexpr double kNumber = 19, kWeight = 30;
  const double in = p.source.lanes(), out = p.target.lanes();
  const double direct = 9.0 * p.source.lots * p.source.lot * p.out_height * p.out_width * in * out;
  const double ours = 36.0 * (p.rows() * (in * out + kNumber * (in + out)) + kWeight * in * out);
  return ours < direct / kSpeed;
}

}  // namespace convoy::amx
