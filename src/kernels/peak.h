// What this CPU can multiply at most, measured: the yardstick of every "share of peak".
#pragma once

namespace convoy {

// GFLOP/s (a multiply-add is two operations): the best product of matrices on each of the current
// threads, all at work at once, summed. Each takes a fraction of a second.
double gemm_f32_gflops();

// bf16 with f32 sums: on the AMX tiles where they work, else by vectors; as f32 where the CPU does
// not multiply bf16, since the numbers are widened then.
double gemm_bf16_gflops();

}  // namespace convoy
