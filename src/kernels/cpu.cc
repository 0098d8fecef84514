#include "kernels/cpu.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <dnnl.hpp>

#include "base/check.h"
#include "kernels/cgroup.h"
#include "kernels/cpu_amx.h"

namespace convoy {
namespace {

struct CpuidAnswer {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero beyond the highest leaf, where the hardware would answer with some other leaf's data.
CpuidAnswer cpuid(unsigned leaf, unsigned subleaf = 0) {
  CpuidAnswer answer;
  if (leaf <= unsigned(__get_cpuid_max(leaf & 0x80000000u, nullptr)))
    __cpuid_count(leaf, subleaf, answer.eax, answer.ebx, answer.ecx, answer.edx);
  return answer;
}

std::string model_name() {
  char text[49] = {};
  for (unsigned part = 0; part < 3; ++part) {
    const CpuidAnswer words = cpuid(0x80000002u + part);
    std::memcpy(text + 16 * part, &words, 16);
  }
  std::string name = text;
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  return name.empty() ? "unknown x86-64" : name;
}

// Palette 1 with at least eight tiles of 16 rows of 64 bytes.
bool palette_described() {
  if (cpuid(0x1D, 0).eax < 1) return false;
  const CpuidAnswer palette = cpuid(0x1D, 1);
  return (palette.ebx & 0xffff) >= 64 && (palette.ebx >> 16) >= 8 && (palette.ecx & 0xffff) >= 16;
}

bool kernel_permits_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// In a child process, which an illegal instruction may kill. The child leaves no core file and runs
// no exit handlers.
bool tiles_work() {
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    _exit(amx_product_is_right() ? 0 : 1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int usable_cores(double quota) {
  cpu_set_t set;
  int cores = int(sysconf(_SC_NPROCESSORS_ONLN));
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
  // A fraction of a core is no core: a team with one thread too many waits for it in every parallel
  // region.
  if (quota < cores) cores = int(quota);
  return std::max(1, cores);
}

std::uint64_t usable_memory(std::uint64_t limit) {
  struct sysinfo info = {};
  if (sysinfo(&info) != 0) return limit;
  return std::min(limit, std::uint64_t(info.totalram) * info.mem_unit);
}

Cpu find_out() {
  Cpu found;
  __builtin_cpu_init();
  found.model = model_name();
  found.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  found.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  found.avx512_bf16 = found.avx512 && (cpuid(7, 1).eax >> 5 & 1);
  const unsigned features = cpuid(7, 0).edx;
  found.amx_bf16 = (features >> 22 & 1) && (features >> 24 & 1);
  found.amx_palette = found.amx_bf16 && palette_described();
  found.amx_works = found.amx_bf16 && found.avx512_bf16 && kernel_permits_tiles() && tiles_work();
  const CgroupLimits limits = cgroup_limits();
  found.cores = usable_cores(limits.cpus);
  found.memory_bytes = usable_memory(limits.memory_bytes);
  return found;
}

}  // namespace

std::string Cpu::isa() const {
  if (amx_works) return "amx";
  if (avx512_bf16) return "avx512_bf16";
  if (avx512) return "avx512";
  return avx2 ? "avx2" : "x86-64";
}

namespace {

Cpu& this_cpu() {
  static Cpu found = find_out();
  return found;
}

}  // namespace

const Cpu& cpu() { return this_cpu(); }

void pretend(const Cpu& other) { this_cpu() = other; }

bool cap_onednn_isa() {
  static const bool capped = [] {
    if (!cpu().amx_bf16 || cpu().amx_palette) return false;
    const auto status = dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
    CHECK(status == dnnl::status::success, "oneDNN was used before cap_onednn_isa()");
    return true;
  }();
  return capped;
}

std::string onednn_version() {
  const dnnl::version_t* version = dnnl::version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace convoy
