// For tests: convolution and dense layers by their definition.
#pragma once

#include <cstddef>

namespace convoy::amx {

// A convolution; a dense layer is one whose kernel covers the map.
struct Plain {
  int batch, in, height, width, out, out_height, out_width, kernel_h, kernel_w, stride, padding,
      groups;

  // body(index in x, in w, in y) for every product.
  template <typename Body>
  void for_products(Body&& body) const {
    const int in_group = in / groups, out_group = out / groups;
    for (int n = 0; n < batch; ++n)
      for (int o = 0; o < out; ++o)
        for (int oy = 0; oy < out_height; ++oy)
          for (int ox = 0; ox < out_width; ++ox)
            for (int i = 0; i < in_group; ++i)
              for (int ky = 0; ky < kernel_h; ++ky)
                for (int kx = 0; kx < kernel_w; ++kx) {
                  const int y = oy * stride - padding + ky, x = ox * stride - padding + kx;
                  if (y < 0 || y >= height || x < 0 || x >= width) continue;
                  const int channel = o / out_group * in_group + i;
                  body(std::size_t(((n * in + channel) * height + y) * width + x),
                       std::size_t(((o * in_group + i) * kernel_h + ky) * kernel_w + kx),
                       std::size_t(((n * out + o) * out_height + oy) * out_width + ox));
                }
  }
  std::size_t products() const {
    return std::size_t(batch) * out * out_height * out_width * in / groups * kernel_h * kernel_w;
  }
};

}  // namespace convoy::amx
