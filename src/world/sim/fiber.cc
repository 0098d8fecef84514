#include "world/sim/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
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

}  // namespace

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
  fiber.context = context::make_fcontext(top, fiber.stack_bytes, start);
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

void Fibers::start(context::transfer_t transfer) {
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
