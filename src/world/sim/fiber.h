// Stacks that one thread switches between. Only world/sim uses it.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace convoy {

// One flow of control. Fibers of one Fibers object run on one thread, one at a time.
struct Fiber {
  void* context = nullptr;  // where it goes on
  std::byte* stack = nullptr;
  void (*entry)(void*) = nullptr;
  void* argument = nullptr;
  std::array<void*, 2> exceptions{};  // what it is handling: the C++ runtime keeps that per thread
  // For the sanitizers.
  void* fake_stack = nullptr;
  void* tsan_fiber = nullptr;
  const void* bottom = nullptr;
  std::size_t stack_bytes = 0;
};

class Fibers {
 public:
  // Stacks are virtual memory: what is never touched costs nothing. Up to some thousand stacks get
  // a guard page each; the kernel allows no more.
  Fibers(std::size_t stack_bytes, std::size_t expected);
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  void prepare(Fiber& fiber, void (*entry)(void*), void* argument);  // entry must never return
  void recycle(Fiber& fiber);                                        // it has ended

  // Leaves `from`, which goes on when somebody switches to it.
  void switch_to(Fiber& from, Fiber& to) { jump(&from, to); }
  [[noreturn]] void end_to(Fiber& to);  // the running fiber has ended

 private:
  struct Transfer;
  static void start(Transfer transfer);
  void jump(Fiber* from, Fiber& to);
  void land(void* context);
  void add_slab();

  std::size_t stack_bytes_;
  std::size_t slab_stacks_;
  std::size_t made_ = 0;
  std::vector<std::byte*> slabs_;
  std::vector<std::byte*> free_;
  Fiber* from_ = nullptr;  // of the switch under way; null when it has ended
  Fiber* to_ = nullptr;
};

}  // namespace convoy
