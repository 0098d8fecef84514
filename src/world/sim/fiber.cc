#include "world/sim/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cstring>

#include "base/check.h"
#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace convoy {
namespace {

namespace context = boost::context::detail;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStackFactor = 8;  // frames are larger there
#else
constexpr std::size_t kStackFactor = 1;
#endif
constexpr std::size_t kPage = 4096;
constexpr std::size_t kMostGuards = 8192;
constexpr std::size_t kColours = 32;  // tops lie on different cache lines

void save_exceptions(Fiber& fiber) {
  std::memcpy(&fiber.exceptions, abi::__cxa_get_globals(), sizeof fiber.exceptions);
}

void restore_exceptions(const Fiber& fiber) {
  std::memcpy(static_cast<void*>(abi::__cxa_get_globals()), &fiber.exceptions,
              sizeof fiber.exceptions);
}

}  // namespace

struct Fibers::Transfer : context::transfer_t {};

Fibers::Fibers(std::size_t stack_bytes, std::size_t expected)
    : stack_bytes_((stack_bytes * kStackFactor + kPage - 1) / kPage * kPage),
      slab_stacks_(std::clamp<std::size_t>(expected, 16, 8192)) {}

Fibers::~Fibers() {
  for (std::byte* const slab : slabs_) munmap(slab, slab_stacks_ * stack_bytes_);
}

void Fibers::add_slab() {
  const std::size_t bytes = slab_stacks_ * stack_bytes_;
  void* const slab = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (slab == MAP_FAILED)
    throw TransportError(
        fmt::format("no {} bytes of address space for the stacks of tasks", bytes));
  slabs_.push_back(static_cast<std::byte*>(slab));
  for (std::size_t stack = slab_stacks_; stack-- > 0;) {
    std::byte* const bottom = slabs_.back() + stack * stack_bytes_;
    if (made_++ < kMostGuards) mprotect(bottom, kPage, PROT_NONE);
    free_.push_back(bottom);
  }
}

void Fibers::prepare(Fiber& fiber, void (*entry)(void*), void* argument) {
  if (free_.empty()) add_slab();
  fiber = {};
  fiber.stack = free_.back();
  free_.pop_back();
  fiber.entry = entry;
  fiber.argument = argument;
  const std::size_t number = reinterpret_cast<std::uintptr_t>(fiber.stack) / stack_bytes_;
  std::byte* const top = fiber.stack + stack_bytes_ - number * 7 % kColours * 64;
  fiber.bottom = fiber.stack + kPage;
  fiber.stack_bytes = top - fiber.stack - kPage;
  const auto enter = [](context::transfer_t transfer) { start(Transfer{transfer}); };
  fiber.context = context::make_fcontext(top, fiber.stack_bytes, enter);
#if defined(__SANITIZE_THREAD__)
  fiber.tsan_fiber = __tsan_create_fiber(0);
#endif
}

void Fibers::recycle(Fiber& fiber) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(fiber.stack + kPage, stack_bytes_ - kPage);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(fiber.tsan_fiber);
#endif
  free_.push_back(fiber.stack);
}

void Fibers::jump(Fiber* from, Fiber& to) {
  if (from != nullptr) save_exceptions(*from);
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
  const context::transfer_t transfer = context::jump_fcontext(to.context, this);
  static_cast<Fibers*>(transfer.data)->land(transfer.fctx);
}

// The first thing that happens on the other side of a switch.
void Fibers::land(void* left) {
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
  restore_exceptions(*to_);
}

void Fibers::start(Transfer transfer) {
  auto* const fibers = static_cast<Fibers*>(transfer.data);
  fibers->land(transfer.fctx);
  fibers->to_->entry(fibers->to_->argument);
  CHECK(false, "the entry of a fiber returned");
}

void Fibers::end_to(Fiber& to) {
  jump(nullptr, to);
  CHECK(false, "a fiber that had ended goes on");
  std::abort();
}

}  // namespace convoy
