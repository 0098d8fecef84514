#include "measure/records.h"

#include <cstring>
#include <iterator>

#include "world/transport.h"

namespace convoy {

std::size_t Records::count() {
  std::size_t sum = 0;
  each([&](const auto& list) { sum += list.size(); });
  return sum;
}

void Records::append(Records&& more) {
  const auto move = [](auto& to, auto& from) {
    if (to.empty())
      to.swap(from);
    else
      to.insert(to.end(), from.begin(), from.end());
  };
  move(steps, more.steps);
  move(ledger, more.ledger);
  move(waits, more.waits);
  move(layers, more.layers);
  move(spans, more.spans);
  move(resources, more.resources);
  move(traffic, more.traffic);
  move(staleness, more.staleness);
  move(latencies, more.latencies);
}

std::vector<std::byte> Records::pack() {
  std::vector<std::byte> bytes;
  const auto put = [&](const void* from, std::size_t size) {
    const std::size_t place = bytes.size();
    bytes.resize(place + size);
    if (size > 0) std::memcpy(bytes.data() + place, from, size);
  };
  each([&](const auto& list) {
    using Record = typename std::decay_t<decltype(list)>::value_type;
    static_assert(std::is_trivially_copyable_v<Record>);
    const std::uint64_t number = list.size();
    put(&number, sizeof number);
    put(list.data(), list.size() * sizeof(Record));
  });
  return bytes;
}

Records Records::unpack(std::span<const std::byte> bytes) {
  Records records;
  records.each([&](auto& list) {
    using Record = typename std::decay_t<decltype(list)>::value_type;
    std::uint64_t number = 0;
    if (bytes.size() < sizeof number) throw TransportError("records that end too early");
    std::memcpy(&number, bytes.data(), sizeof number);
    bytes = bytes.subspan(sizeof number);
    if (number > bytes.size() / sizeof(Record)) throw TransportError("records that end too early");
    list.resize(number);
    if (number > 0) std::memcpy(list.data(), bytes.data(), number * sizeof(Record));
    bytes = bytes.subspan(number * sizeof(Record));
  });
  if (!bytes.empty()) throw TransportError("records with something behind them");
  return records;
}

}  // namespace convoy
