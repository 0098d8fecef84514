#include "kernels/parallel.h"

#include <immintrin.h>

#include "kernels/cpu.h"

namespace convoy {
namespace {

// Numbers too small for a normal float count as zero: decaying averages (Adam's of a unit that
// died) end among them, where every operation takes a hundred cycles. The mode belongs to a thread,
// and the team's threads stay.
void flush_denormals() {
  parallel([](int, int) {
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
  });
}

}  // namespace

void set_threads(int threads) {
  omp_set_dynamic(0);
  omp_set_num_threads(threads > 0 ? threads : cpu().cores);
  flush_denormals();
}

}  // namespace convoy
