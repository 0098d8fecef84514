// All-reduce by the transport's own library, where it has one (MPI_Allreduce).
#include <algorithm>

#include "sync/algorithms.h"
#include "sync/intent_check.h"
#include "world/native_collectives.h"

namespace convoy {
namespace {

template <typename Number>
std::span<Number> numbers(std::span<std::byte> bytes) {
  return {reinterpret_cast<Number*>(bytes.data()), bytes.size() / sizeof(Number)};
}

}  // namespace

bool offers_native(Transport& transport) {
  return transport.native_collectives() != nullptr;
}

void native(const Operation& operation, std::span<std::byte> buffer) {
  NativeCollectives* const library = operation.transport.native_collectives();
  if (!library)
    throw ConfigError("algorithm native: this transport has no all-reduce of its own; use ring");
  if (operation.size() != operation.transport.size())
    throw ConfigError("algorithm native: works among all ranks only; use ring");
  if (operation.intent_check) operation.intent_check->finish(operation.timeout_s);
  const bool adds = operation.reduction != Reduction::max;
  if (operation.element == Element::f32 && adds)
    library->sum(numbers<float>(buffer), operation.timeout_s);
  else if (operation.element == Element::i64 && adds)
    library->sum(numbers<std::int64_t>(buffer), operation.timeout_s);
  else if (operation.element == Element::i64)
    library->max(numbers<std::int64_t>(buffer), operation.timeout_s);
  else
    throw ConfigError("algorithm native: no {} of {}; use ring",
                      reduction_name(operation.reduction), element_name(operation.element));
  operation.apply_factor(buffer);
}

}  // namespace convoy
