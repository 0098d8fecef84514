#include "kernels/onednn/own_passes.h"

#include <functional>

#include "base/check.h"

namespace convoy::onednn {
namespace {

class OwnPass final : public Pass {
 public:
  // operand(name): its floats.
  using Find = std::function<float*(int name)>;
  using Run = std::function<void(const Find& operand, std::byte* scratch)>;

  OwnPass(std::string kernel, std::size_t scratch_bytes, Run run)
      : kernel_(std::move(kernel)), scratch_bytes_(scratch_bytes), run_(std::move(run)) {}

  void run(std::initializer_list<Operand> operands, std::byte* scratch) override {
    run_(
        [&](int name) {
          for (const Operand& operand : operands)
            if (operand.name == name)
              return const_cast<float*>(static_cast<const float*>(operand.data));
          CHECK(false, "no operand {}", name);
          return static_cast<float*>(nullptr);
        },
        scratch);
  }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::string kernel() const override { return kernel_; }

 private:
  std::string kernel_;
  std::size_t scratch_bytes_;
  Run run_;
};

std::unique_ptr<Pass> winograd_pass(const winograd::Size& size, OwnPass::Run run) {
  return std::make_unique<OwnPass>("winograd:avx2", winograd::scratch_bytes(size), std::move(run));
}

std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

std::unique_ptr<Pass> winograd_forward(const winograd::Size& size, int biases, bool relu) {
  return winograd_pass(size, [=](const OwnPass::Find& operand, std::byte* scratch) {
    winograd::forward(size, operand(DNNL_ARG_SRC), operand(DNNL_ARG_WEIGHTS),
                      {biases ? operand(DNNL_ARG_BIAS) : nullptr, std::size_t(biases)}, relu,
                      operand(DNNL_ARG_DST), scratch);
  });
}

std::unique_ptr<Pass> winograd_backward_data(const winograd::Size& size) {
  return winograd_pass(size, [=](const OwnPass::Find& operand, std::byte* scratch) {
    winograd::backward_data(size, operand(DNNL_ARG_WEIGHTS), operand(DNNL_ARG_DIFF_DST),
                            operand(DNNL_ARG_DIFF_SRC), scratch);
  });
}

std::unique_ptr<Pass> winograd_backward_weights(const winograd::Size& size, int biases) {
  return winograd_pass(size, [=](const OwnPass::Find& operand, std::byte* scratch) {
    winograd::backward_weights(
        size, operand(DNNL_ARG_SRC), operand(DNNL_ARG_DIFF_DST), operand(DNNL_ARG_DIFF_WEIGHTS),
        {biases ? operand(DNNL_ARG_DIFF_BIAS) : nullptr, std::size_t(biases)}, scratch);
  });
}

std::unique_ptr<Pass> image_backward_weights(const ImageConvolution& size, int biases,
                                             const Desc& plain, const Desc& stored) {
  const std::size_t own_bytes = whole_lines(image_weights_bytes(size));
  return std::make_unique<OwnPass>(
      "images:avx2", own_bytes + plain.get_size(),
      [=, reorder = make_reorder(plain, stored)](const OwnPass::Find& operand,
                                                 std::byte* scratch) mutable {
        auto* made = reinterpret_cast<float*>(scratch + own_bytes);
        image_weights(size, operand(DNNL_ARG_SRC), operand(DNNL_ARG_DIFF_DST), made,
                      {biases ? operand(DNNL_ARG_DIFF_BIAS) : nullptr, std::size_t(biases)},
                      scratch);
        reorder.point(DNNL_ARG_FROM, made);
        reorder.point(DNNL_ARG_TO, operand(DNNL_ARG_DIFF_WEIGHTS));
        reorder.execute();
      });
}

}  // namespace convoy::onednn
