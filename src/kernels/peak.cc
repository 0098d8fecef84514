#include "kernels/peak.h"

#include <algorithm>
#include <dnnl.hpp>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "kernels/cpu.h"
#include "kernels/parallel.h"
#include "kernels/peak_amx.h"
#include "kernels/peak_avx512.h"

namespace convoy {
namespace {

constexpr double kMeasureSeconds = 0.4;
constexpr int kSide =
    640;  // a product takes a few milliseconds: often undisturbed even on a busy machine

// Runs `work` (which returns its operations) once to warm up, then for kMeasureSeconds and at least
// three times. The best counts: what is slower was disturbed.
template <typename Work>
double best_gflops(Work work) {
  work();
  double best = 0;
  const double end = now_s() + kMeasureSeconds;
  for (int run = 0; run < 3 || now_s() < end; ++run) {
    const double begin = now_s();
    const double operations = work();
    best = std::max(best, operations / (now_s() - begin) * 1e-9);
  }
  return best;
}

// The same on every thread of the team at once, each with work of its own; the sum. No thread waits
// for another, so a neighbour on one core does not spoil the figure of all.
template <typename MakeWork>
double best_gflops_of_team(MakeWork make_work) {
  std::vector<double> best(threads());
  parallel([&](int thread, int) { best[thread] = best_gflops(make_work()); });
  return std::accumulate(best.begin(), best.end(), 0.0);
}

}  // namespace

double gemm_f32_gflops() {
  cap_onednn_isa();
  return best_gflops_of_team([] {
    return
        [a = std::vector<float>(kSide * kSide, 0.5f), b = std::vector<float>(kSide * kSide, 0.25f),
         c = std::vector<float>(kSide * kSide)]() mutable {
          const auto status = dnnl::sgemm('N', 'N', kSide, kSide, kSide, 1.0f, a.data(), kSide,
                                          b.data(), kSide, 0.0f, c.data(), kSide);
          CHECK(status == dnnl::status::success, "sgemm of {0} x {0}", kSide);
          CHECK(c[kSide + 1] == 0.125f * kSide, "sgemm gave {}", c[kSide + 1]);
          return 2.0 * kSide * kSide * kSide;
        };
  });
}

double gemm_bf16_gflops() {
  if (!cpu().multiplies_bf16()) return gemm_f32_gflops();
  const auto products = cpu().amx_works ? amx_products : avx512_bf16_products;
  return best_gflops_of_team(
      [products] { return [products] { return double(products(50'000)); }; });
}

}  // namespace convoy
