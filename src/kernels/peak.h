// What this CPU can multiply at most, measured: the yardstick of every "share of peak".
#pragma once

namespace convoy {

// GFLOP/s (a multiply-add is two operations) of the best of several products of large matrices on
// the current threads. Each takes a fraction of a second.
double gemm_f32_gflops();

// bf16 with f32 sums: on the AMX tiles where they work, else by oneDNN where the CPU has bf16
// instructions, else 0.
double gemm_bf16_gflops();

}  // namespace convoy
