// A parameter in a layout that oneDNN describes.
#pragma once

#include "kernels/family.h"
#include "kernels/onednn/engine.h"

namespace convoy::onednn {

class DescLayout : public StoredLayout {
 public:
  DescLayout(Desc plain, Desc stored) : plain_(std::move(plain)), stored_(std::move(stored)) {}

  std::size_t stored_count() const override { return stored_.get_size() / sizeof(float); }
  void to_plain(const float* stored, float* plain) const override {
    copy(stored_, stored, plain_, plain);
  }
  void from_plain(const float* plain, float* stored) const override {
    copy(plain_, plain, stored_, stored);
  }

 private:
  static void copy(const Desc& from, const float* source, const Desc& to, float* target) {
    Call reorder = make_reorder(from, to);
    reorder.point(DNNL_ARG_FROM, source);
    reorder.point(DNNL_ARG_TO, target);
    reorder.execute();
  }

  Desc plain_, stored_;
};

}  // namespace convoy::onednn
