#include "kernels/parallel.h"

#include "kernels/cpu.h"

namespace convoy {

void set_threads(int threads) {
  omp_set_dynamic(0);
  omp_set_num_threads(threads > 0 ? threads : cpu().cores);
}

}  // namespace convoy
