// What this CPU can do, found once.
#pragma once

#include <cstdint>
#include <string>

namespace convoy {

struct Cpu {
  std::string model;  // "Intel(R) Xeon(R) Processor"
  bool avx2 = false;
  bool avx512 = false;  // F, BW, DQ, VL
  bool avx512_bf16 = false;
  bool amx_bf16 = false;     // announced by CPUID leaf 7
  bool amx_palette = false;  // CPUID leaf 0x1D describes the tiles; some hypervisors hide it
  bool amx_works =
      false;      // announced, permitted by the kernel, and a tile product gave the right answer
  int cores = 1;  // that this process may run on
  std::uint64_t memory_bytes = 0;
  bool multiplies_bf16() const { return amx_works || avx512_bf16; }
  std::string isa() const;  // the widest usable: "avx2", "avx512", "avx512_bf16", "amx"
};

// Asks the kernel for the tile registers where they are announced (once per process), so call it
// before any AMX code.
const Cpu& cpu();

// For tests: from here on this process takes its CPU for another one. Before there are threads.
void pretend(const Cpu& other);

// oneDNN 2.6 dies with SIGILL in bf16 where AMX is announced but its palette is hidden. We use its
// f32 alone; as a precaution this caps its ISA there. Call before the first use of oneDNN. Returns
// whether it was capped.
bool cap_onednn_isa();

// "2.6.3", for records.
std::string onednn_version();

}  // namespace convoy
