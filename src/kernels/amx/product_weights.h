// What a convolution or dense layer is as a tile product.
#pragma once

#include "kernels/amx/product.h"
#include "kernels/family.h"

namespace convoy::amx {

struct ProductForm {
  int in = 0, out = 0;  // channels
  int taps = 1;    // of the plain weights; a dense layer has one for each position of its input
  int groups = 1;  // more than one: stored as one group, with zeros between
  bool dense = false;
  bool columns = false;  // the plain input's windows are laid out as channels (channel * taps +
                         // tap), and there is one tap
  WeightShape shape;     // of the stored weights

  std::size_t stored_index(int channel, int out, int tap) const;
};

ProductForm product_form(const OpSpec& spec);

// Zeroes what lies between groups in a stored gradient.
void clear_between_groups(const ProductForm& form, float* gradient);

}  // namespace convoy::amx
