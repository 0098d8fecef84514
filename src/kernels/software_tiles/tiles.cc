#include "kernels/software_tiles/tiles.h"

#include <immintrin.h>
#include <signal.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstring>

#include "kernels/cpu.h"

namespace convoy {
namespace {

constexpr int kRows = 16, kRowBytes = 64;

struct alignas(64) Tile {
  std::uint8_t rows[kRows][kRowBytes];
};
thread_local Tile t_tiles[8];
thread_local bool t_configured = false;
std::atomic<long> instructions{0};

// The numbers of a pair of bf16.
float first_of(std::uint32_t pair) { return std::bit_cast<float>(pair << 16); }
float second_of(std::uint32_t pair) { return std::bit_cast<float>(pair & 0xffff0000u); }

// The bytes of a tile instruction: a prefix of three, which gives the operation together with the
// opcode, and the operands.
struct Instruction {
  const std::uint8_t* bytes;
  int map() const { return bytes[1] & 31; }
  bool wide() const { return bytes[2] & 0x80; }
  int second() const { return ~(bytes[2] >> 3) & 15; }  // the register that the prefix names
  bool longer() const { return bytes[2] & 4; }
  int kind() const { return bytes[2] & 3; }  // 0: none, 1: 66, 2: F3, 3: F2
  int opcode() const { return bytes[3]; }
  int mode() const { return bytes[4] >> 6; }  // 3: registers, else memory
  int reg() const { return bytes[4] >> 3 & 7; }
  int rm() const { return bytes[4] & 7; }
  // Bits that make general registers 8 to 15 of the index and the base.
  int high_index() const { return bytes[1] & 0x40 ? 0 : 8; }
  int high_base() const { return bytes[1] & 0x20 ? 0 : 8; }
};

std::int64_t general(const ucontext_t* state, int number) {
  static constexpr int kNames[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                     REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                     REG_R12, REG_R13, REG_R14, REG_R15};
  return state->uc_mcontext.gregs[kNames[number]];
}

struct Operand {
  std::uint8_t* address = nullptr;
  std::int64_t row_bytes = 0;  // of tiles: from a row to the next
  int length = 5;              // of the whole instruction
};
Operand memory_operand(const ucontext_t* state, Instruction it) {
  Operand operand;
  std::int64_t address = 0;
  bool absolute = false;
  if (it.rm() == 4) {
    const int sib = it.bytes[operand.length++];
    const int index = (sib >> 3 & 7) + it.high_index(), base = (sib & 7) + it.high_base();
    absolute = (sib & 7) == 5 && it.mode() == 0;
    if (index != 4) operand.row_bytes = general(state, index) << (sib >> 6);
    if (!absolute) address = general(state, base);
  } else if (it.rm() == 5 && it.mode() == 0) {  // from the next instruction on
    absolute = true;
    address = state->uc_mcontext.gregs[REG_RIP] + operand.length + 4;
  } else {
    address = general(state, it.rm() + it.high_base());
  }
  if (it.mode() == 1) {
    address += static_cast<std::int8_t>(it.bytes[operand.length]);
    operand.length += 1;
  } else if (it.mode() == 2 || absolute) {
    std::int32_t further;
    std::memcpy(&further, it.bytes + operand.length, sizeof further);
    address += further;
    operand.length += 4;
  }
  operand.address = reinterpret_cast<std::uint8_t*>(address);
  return operand;
}

// What our kernels configure: eight full tiles of palette 1.
bool is_full(const std::uint8_t* configuration) {
  std::uint16_t row_bytes[8];
  std::memcpy(row_bytes, configuration + 16, sizeof row_bytes);
  for (int tile = 0; tile < 8; ++tile)
    if (row_bytes[tile] != kRowBytes || configuration[48 + tile] != kRows) return false;
  return configuration[0] == 1 && configuration[1] == 0;
}

// The length of the instruction, which was carried out; 0 where it is none that our kernels use.
int carry_out(const ucontext_t* state, const std::uint8_t* bytes) {
  const Instruction it{bytes};
  if (bytes[0] != 0xc4 || it.map() != 2 || it.wide() || it.longer()) return 0;
  const bool memory = it.mode() != 3;
  if (it.opcode() == 0x49 && it.kind() == 0 && memory) {  // ldtilecfg
    const Operand from = memory_operand(state, it);
    std::memset(t_tiles, 0, sizeof t_tiles);
    t_configured = is_full(from.address);
    return t_configured ? from.length : 0;
  }
  if (!t_configured) return 0;
  if (it.opcode() == 0x49 && it.kind() == 0) {  // tilerelease
    t_configured = false;
    return 5;
  }
  if (it.opcode() == 0x49 && it.kind() == 3 && !memory) {  // tilezero
    std::memset(&t_tiles[it.reg()], 0, sizeof(Tile));
    return 5;
  }
  if (it.opcode() == 0x4b && memory && it.kind() != 0) {
    const Operand there = memory_operand(state, it);
    Tile& tile = t_tiles[it.reg()];
    for (int row = 0; row < kRows; ++row) {
      std::uint8_t* memory_row = there.address + row * there.row_bytes;
      if (it.kind() == 2) {  // tilestored
        std::memcpy(memory_row, tile.rows[row], kRowBytes);
      } else {  // tileloadd, tileloaddt1
        std::memcpy(tile.rows[row], memory_row, kRowBytes);
      }
    }
    return there.length;
  }
  if (it.opcode() == 0x5c && it.kind() == 2 && !memory) {  // tdpbf16ps
    const auto words = [](int tile) { return reinterpret_cast<std::uint32_t*>(&t_tiles[tile]); };
    software_tile_product(reinterpret_cast<float*>(words(it.reg())), words(it.rm()),
                          words(it.second()));
    return 5;
  }
  return 0;
}

void on_illegal_instruction(int, siginfo_t*, void* context) {
  auto* state = static_cast<ucontext_t*>(context);
  auto& at = state->uc_mcontext.gregs[REG_RIP];
  long done = 0;
  // Where several follow each other, one signal serves all.
  while (const int length = carry_out(state, reinterpret_cast<const std::uint8_t*>(at))) {
    at += length;
    ++done;
  }
  instructions += done;
  if (done > 0) return;
  constexpr char kText[] = "an illegal instruction that is none of AMX's\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
  signal(SIGILL, SIG_DFL);  // it comes again
}

// Before the tests of a program are counted, which depends on whether there are tiles.
__attribute__((constructor(1000))) void provide_tiles() {
  if (cpu().amx_works || !cpu().avx512_bf16) return;
  struct sigaction action = {};
  action.sa_sigaction = on_illegal_instruction;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGILL, &action, nullptr);
  Cpu with_tiles = cpu();
  with_tiles.amx_works = true;
  pretend(with_tiles);
}

}  // namespace

long software_tile_instructions() { return instructions; }

void software_tile_product(float* sums, const std::uint32_t* left, const std::uint32_t* right) {
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(0x9fc0);  // to the nearest, tiny numbers are zero, no exceptions
  for (int row = 0; row < kRows; ++row) {
    float even[16] = {}, odd[16] = {};
    for (int k = 0; k < 16; ++k) {
      const float left_even = first_of(left[row * 16 + k]),
                  left_odd = second_of(left[row * 16 + k]);
      for (int column = 0; column < 16; ++column) {
        const std::uint32_t pair = right[k * 16 + column];
        even[column] = __builtin_fmaf(left_even, first_of(pair), even[column]);
        odd[column] = __builtin_fmaf(left_odd, second_of(pair), odd[column]);
      }
    }
    for (int column = 0; column < 16; ++column)
      sums[row * 16 + column] += even[column] + odd[column];
  }
  _mm_setcsr(mode);
}

}  // namespace convoy
