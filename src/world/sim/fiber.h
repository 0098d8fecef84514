// Stacks that one thread switches between. Only world/sim uses it.
#pragma once

#include <cxxabi.h>

#include <array>
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstring>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace convoy {

// One flow of control. Fibers of one Fibers object run on one thread, one at a time.
struct Fiber {
  void* context = nullptr;            // where it goes on
  std::array<void*, 2> exceptions{};  // what it is handling: the C++ runtime keeps that per thread
  std::byte* stack = nullptr;
  void (*entry)(void*) = nullptr;
  void* argument = nullptr;
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
  static void start(boost::context::detail::transfer_t transfer);
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

// Inline, like what calls it: after a switch every return on the way back to the task is predicted
// wrongly, so the way should be short.
inline void Fibers::jump(Fiber* from, Fiber& to) {
  auto* const exceptions = static_cast<void*>(abi::__cxa_get_globals());
  if (from != nullptr) std::memcpy(&from->exceptions, exceptions, sizeof from->exceptions);
  std::memcpy(exceptions, &to.exceptions, sizeof to.exceptions);
  from_ = from;
  to_ = &to;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(from != nullptr ? &from->fake_stack : nullptr, to.bottom,
                                 to.stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  if (from != nullptr && from->tsan_fiber == nullptr) from->tsan_fiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.tsan_fiber, 0);
#endif
  const auto transfer = boost::context::detail::jump_fcontext(to.context, this);
  static_cast<Fibers*>(transfer.data)->land(transfer.fctx);
}

// The first thing that happens on the other side of a switch.
inline void Fibers::land(void* left) {
  if (from_ != nullptr) from_->context = left;
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(to_->fake_stack, &bottom, &bytes);
  if (from_ != nullptr && from_->bottom == nullptr) {  // the thread's own stack
    from_->bottom = bottom;
    from_->stack_bytes = bytes;
  }
#endif
}

}  // namespace convoy
