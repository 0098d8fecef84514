#include "kernels/parallel.h"

#include <immintrin.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

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

void limit_spinning(char* const* arguments) {
  // Small networks are as fast as with endless spinning from 2,000 turns (a tenth of a millisecond)
  // on; beside others, fewer are better.
  constexpr const char* kTurns = "2000";
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || ::setenv("GOMP_SPINCOUNT", kTurns, 0) != 0) return;
  ::execv(program.c_str(), arguments);
  // Where that is not possible, everything works as well, if slower beside others.
}

void set_threads(int threads) {
  omp_set_dynamic(0);
  // More than OMP_THREAD_LIMIT would not come, and oneDNN would wait for them for ever.
  omp_set_num_threads(std::min(threads > 0 ? threads : cpu().cores, omp_get_thread_limit()));
  flush_denormals();
}

}  // namespace convoy
