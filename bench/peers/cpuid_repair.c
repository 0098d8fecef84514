// LD_PRELOAD library: gives a program the CPUID leaves about AMX tiles that some hypervisors hide.
//
// Such a hypervisor announces AMX (leaf 7) and the CPU has it, but leaf 0x1D, which says how large
// a tile is, reads as zero. oneDNN, hence PyTorch, then configures tiles of no size and dies with
// SIGILL. Here the process asks Linux to make each CPUID instruction fault, and a SIGSEGV handler
// answers it: the CPU's own values, but for the leaves below. Only the process that is started with
// the library is affected: the programs that it starts are not.

#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { kArchSetCpuid = 0x1012, kArchReqXcompPerm = 0x1023 };  // of arch_prctl
enum { kTileData = 18 };                                      // the state component of the tiles
enum { kTileLeaf = 0x1D, kProductLeaf = 0x1E };

// Per thread; threads inherit it. Off: CPUID faults.
static int set_cpuid(int on) { return (int)syscall(SYS_arch_prctl, kArchSetCpuid, (long)on); }

struct Registers {
  unsigned a, b, c, d;
};

static struct Registers answer(unsigned leaf, unsigned subleaf) {
  struct Registers r = {0, 0, 0, 0};
  if (leaf == kTileLeaf && subleaf == 0) {
    r.a = 1;  // the last palette
  } else if (leaf == kTileLeaf && subleaf == 1) {
    r.a = 1024 << 16 | 8192;  // bytes of a tile, of all tiles
    r.b = 8 << 16 | 64;       // tiles, bytes of a row
    r.c = 16;                 // rows
  } else if (leaf == kProductLeaf && subleaf == 0) {
    r.b = 64 << 8 | 16;  // columns in bytes, rows of a tile product
  } else if (leaf != kTileLeaf && leaf != kProductLeaf) {
    set_cpuid(1);
    __cpuid_count(leaf, subleaf, r.a, r.b, r.c, r.d);
    set_cpuid(0);
    if (leaf == 0 && r.a < kProductLeaf) r.a = kProductLeaf;  // the last leaf
  }
  return r;
}

static void on_fault(int number, siginfo_t* info, void* context) {
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const unsigned char* code = (const unsigned char*)registers[REG_RIP];
  // SI_KERNEL: a general protection fault, as CPUID gives; an access to a bad address has another
  // code.
  if (info->si_code != SI_KERNEL || code[0] != 0x0F || code[1] != 0xA2) {
    signal(number,
           SIG_DFL);  // a fault of the program's own: it happens again, and ends the process
    return;
  }
  const int saved = errno;
  const struct Registers r = answer((unsigned)registers[REG_RAX], (unsigned)registers[REG_RCX]);
  registers[REG_RAX] = r.a;
  registers[REG_RBX] = r.b;
  registers[REG_RCX] = r.c;
  registers[REG_RDX] = r.d;
  registers[REG_RIP] += 2;
  errno = saved;
}

__attribute__((constructor)) static void repair(void) {
  unsetenv("LD_PRELOAD");
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  if (syscall(SYS_arch_prctl, kArchReqXcompPerm, (long)kTileData) != 0) {
    perror("cpuid_repair: Linux does not permit AMX");
  } else if (sigaction(SIGSEGV, &action, NULL) != 0 || set_cpuid(0) != 0) {
    perror("cpuid_repair: CPUID cannot be made to fault");
  }
}
