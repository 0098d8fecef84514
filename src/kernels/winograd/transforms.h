// Winograd's F(4, 3) and F(2, 5) along one line: at the points 0, 1, -1, 2, -2 and infinity, 4 (2)
// outputs y of a convolution of 6 inputs d by 3 (5) weights g are A'((G g) * (B' d)), and the
// gradient of g is G'((A dy) * (B' d)).
//
// Each transform reads its numbers `from_step` vectors apart and writes them `to_step` apart, so
// that it runs along rows and along columns. V says what a vector is: V::Vector, which can be added
// and subtracted, V::times(c, a) and V::scaled(c, a, b), which is c * a + b. All is static, since
// it is compiled for several kinds of CPU.
#pragma once

#define CONVOY_TRANSFORM static inline __attribute__((always_inline))

namespace convoy::winograd {

constexpr int kSide = 6;  // of a transformed tile
constexpr int kPoints = kSide * kSide;

// B': 6 inputs to 6.
template <typename V>
CONVOY_TRANSFORM void transform_source(const typename V::Vector* d, int from_step,
                                       typename V::Vector* to, int to_step) {
  using T = typename V::Vector;
  const T d1 = d[from_step], d2 = d[2 * from_step], d3 = d[3 * from_step], d4 = d[4 * from_step];
  const T even = V::scaled(-4, d2, d4), odd = V::scaled(-4, d1, d3);
  const T far_even = d4 - d2, far_odd = V::times(2, d3 - d1);
  to[0] = V::scaled(4, d[0], V::scaled(-5, d2, d4));
  to[to_step] = even + odd;
  to[2 * to_step] = even - odd;
  to[3 * to_step] = far_even + far_odd;
  to[4 * to_step] = far_even - far_odd;
  to[5 * to_step] = V::scaled(4, d1, V::scaled(-5, d3, d[5 * from_step]));
}

// G: 3 or 5 weights to 6.
template <typename V, int kTap>
CONVOY_TRANSFORM void transform_weights(const typename V::Vector* g, int from_step,
                                        typename V::Vector* to, int to_step) {
  using T = typename V::Vector;
  T near = g[0] + g[2 * from_step], near_odd = g[from_step];
  T far = V::scaled(4, g[2 * from_step], g[0]), far_odd = V::times(2, g[from_step]);
  if constexpr (kTap == 5) {
    near = near + g[4 * from_step];
    near_odd = near_odd + g[3 * from_step];
    far = V::scaled(16, g[4 * from_step], far);
    far_odd = V::scaled(8, g[3 * from_step], far_odd);
  }
  to[0] = V::times(0.25f, g[0]);
  to[to_step] = V::times(-1.0f / 6, near + near_odd);
  to[2 * to_step] = V::times(-1.0f / 6, near - near_odd);
  to[3 * to_step] = V::times(1.0f / 24, far + far_odd);
  to[4 * to_step] = V::times(1.0f / 24, far - far_odd);
  to[5 * to_step] = g[(kTap - 1) * from_step];
}

// A': 6 products to 4 or 2 outputs.
template <typename V, int kTile>
CONVOY_TRANSFORM void transform_products(const typename V::Vector* m, int from_step,
                                         typename V::Vector* to, int to_step) {
  using T = typename V::Vector;
  const T m1 = m[from_step], m2 = m[2 * from_step], m3 = m[3 * from_step];
  const T m4 = m[4 * from_step], m5 = m[5 * from_step];
  const T near = m1 + m2, near_odd = m1 - m2, far = m3 + m4, far_odd = m3 - m4;
  to[0] = m[0] + near + far;
  const T second = V::scaled(2, far_odd, near_odd);
  if constexpr (kTile == 4) {
    to[to_step] = second;
    to[2 * to_step] = V::scaled(4, far, near);
    to[3 * to_step] = V::scaled(8, far_odd, near_odd) + m5;
  } else {
    to[to_step] = second + m5;
  }
}

// A: the gradients of 4 or 2 outputs to 6. The second is their sum.
template <typename V, int kTile>
CONVOY_TRANSFORM void transform_gradients(const typename V::Vector* y, int from_step,
                                          typename V::Vector* to, int to_step) {
  using T = typename V::Vector;
  T near = y[0], near_odd = y[from_step];
  T far = y[0], far_odd = V::times(2, y[from_step]);
  if constexpr (kTile == 4) {
    near = near + y[2 * from_step];
    near_odd = near_odd + y[3 * from_step];
    far = V::scaled(4, y[2 * from_step], far);
    far_odd = V::scaled(8, y[3 * from_step], far_odd);
  }
  to[0] = y[0];
  to[to_step] = near + near_odd;
  to[2 * to_step] = near - near_odd;
  to[3 * to_step] = far + far_odd;
  to[4 * to_step] = far - far_odd;
  to[5 * to_step] = y[(kTile - 1) * from_step];
}
constexpr int kSumPoint = kSide + 1;  // holds the sum of a tile's gradients

// G': 6 products to the gradients of 3 or 5 weights.
template <typename V, int kTap>
CONVOY_TRANSFORM void transform_weight_products(const typename V::Vector* m, int from_step,
                                                typename V::Vector* to, int to_step) {
  using T = typename V::Vector;
  const T m1 = m[from_step], m2 = m[2 * from_step], m3 = m[3 * from_step];
  const T m4 = m[4 * from_step], m5 = m[5 * from_step];
  const T near = V::times(-1.0f / 6, m1 + m2), near_odd = V::times(-1.0f / 6, m1 - m2);
  const T far = m3 + m4, far_odd = m3 - m4;
  to[0] = V::scaled(0.25f, m[0], V::scaled(1.0f / 24, far, near));
  to[to_step] = V::scaled(1.0f / 12, far_odd, near_odd);
  const T third = V::scaled(1.0f / 6, far, near);
  if constexpr (kTap == 5) {
    to[2 * to_step] = third;
    to[3 * to_step] = V::scaled(1.0f / 3, far_odd, near_odd);
    to[4 * to_step] = V::scaled(2.0f / 3, far, near) + m5;
  } else {
    to[2 * to_step] = third + m5;
  }
}

}  // namespace convoy::winograd
