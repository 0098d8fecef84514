#include "sync/reduce_loops.h"

namespace convoy {

ReduceKernels reduce_kernels_avx512() { return kLoops; }

}  // namespace convoy
