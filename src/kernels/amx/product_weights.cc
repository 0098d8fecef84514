// Stored weights [tap][in plane][out plane][32 in][32 out] of f32 for plain weights [out][in /
// groups][taps].
#include "kernels/amx/product_weights.h"

#include <cstring>

#include "kernels/amx/layout.h"
#include "kernels/amx/ops.h"

namespace convoy::amx {

namespace {

constexpr int kFewChannels = 16;

int planes_of(int channels) { return (channels + kLanes - 1) / kLanes; }

}  // namespace

ProductForm product_form(const OpSpec& spec) {
  const Shape in = spec.inputs.at(0);
  ProductForm form;
  form.out = spec.output.channels;
  if (const auto* c = std::get_if<Convolution>(&spec.layer)) {
    form.taps = c->kernel * c->kernel;
    form.groups = c->groups;
    form.in = in.channels;
    form.columns =
        spec.first && in.channels <= kFewChannels && in.channels * form.taps <= kLongestColumn;
  } else {
    form.taps = int(in.area());
    form.in = in.channels;
    form.columns = spec.first;
    form.dense = true;
  }
  const int channels = form.columns ? form.in * form.taps : form.in;
  form.shape = {.taps = form.columns ? 1 : form.taps,
                .in_planes = planes_of(channels),
                .out_planes = planes_of(form.out)};
  return form;
}

std::size_t ProductForm::stored_index(int channel, int o, int tap) const {
  const int in_lane = columns ? channel * taps + tap : channel;
  const std::size_t stored_tap = columns ? 0 : tap;
  return ((stored_tap * shape.in_planes + in_lane / kLanes) * shape.out_planes + o / kLanes) *
             kBlock +
         in_lane % kLanes * kLanes + o % kLanes;
}

namespace {

class ProductWeights : public StoredLayout {
 public:
  explicit ProductWeights(ProductForm form) : form_(form) {}

  std::size_t stored_count() const override { return form_.shape.size(); }

  void to_plain(const float* stored, float* plain) const override {
    for_each(
        [&](std::size_t in_plain, std::size_t in_stored) { plain[in_plain] = stored[in_stored]; });
  }

  void from_plain(const float* plain, float* stored) const override {
    std::memset(stored, 0, stored_count() * sizeof(float));
    for_each(
        [&](std::size_t in_plain, std::size_t in_stored) { stored[in_stored] = plain[in_plain]; });
  }

 private:
  template <typename Body>
  void for_each(Body&& body) const {
    const int per_group = form_.in / form_.groups;
    std::size_t plain = 0;
    for (int o = 0; o < form_.out; ++o) {
      const int first = o / (form_.out / form_.groups) * per_group;
      for (int i = 0; i < per_group; ++i) {
        for (int tap = 0; tap < form_.taps; ++tap)
          body(plain++, form_.stored_index(first + i, o, tap));
      }
    }
  }

  ProductForm form_;
};

}  // namespace

void clear_between_groups(const ProductForm& form, float* gradient) {
  if (form.groups == 1) return;
  const int in_per_group = form.in / form.groups, out_per_group = form.out / form.groups;
  for (int o = 0; o < form.out; ++o) {
    for (int channel = 0; channel < form.in; ++channel) {
      if (channel / in_per_group == o / out_per_group) continue;
      for (int tap = 0; tap < form.taps; ++tap) gradient[form.stored_index(channel, o, tap)] = 0;
    }
  }
}

std::unique_ptr<StoredLayout> make_product_weights(const OpSpec& spec) {
  return std::make_unique<ProductWeights>(product_form(spec));
}

bool reads_plain_input(const OpSpec& spec) { return product_form(spec).columns; }

bool writes_plain_logits(const OpSpec& spec) {
  const auto* dense = std::get_if<Dense>(&spec.layer);
  return dense && !dense->relu;
}

}  // namespace convoy::amx
