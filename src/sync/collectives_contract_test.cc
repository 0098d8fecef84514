// What every algorithm promises, in every world: the same bytes on all ranks, and the right sum.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "sync/collective_worlds.h"
#include "sync/communicator.h"
#include "world/host_memory.h"

namespace convoy {
namespace {

void expect(bool held, const std::string& text) {
  if (!held) throw std::runtime_error(text);
}

// Small whole numbers: their sums are exact in every element, bf16 included, whatever the order.
std::int64_t value_at(std::size_t place, int rank) {
  return std::int64_t((place * 7 + std::size_t(rank) * 13) % 15) - 6;
}

std::uint16_t to_bf16(float value) {
  return std::uint16_t(std::bit_cast<std::uint32_t>(value) >> 16);
}

void put(std::byte* at, Element element, std::int64_t value) {
  const float real = float(value);
  const std::uint16_t half = to_bf16(real);
  if (element == Element::f32) std::memcpy(at, &real, 4);
  if (element == Element::bf16) std::memcpy(at, &half, 2);
  if (element == Element::i64) std::memcpy(at, &value, 8);
}

void fill(std::span<std::byte> buffer, Element element, int rank) {
  const std::size_t width = element_bytes(element);
  for (std::size_t place = 0; place * width < buffer.size(); ++place)
    put(buffer.data() + place * width, element, value_at(place, rank));
}

std::int64_t serial(std::size_t place, int ranks, Reduction reduction) {
  std::int64_t total = value_at(place, 0);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::int64_t value = value_at(place, rank);
    total = reduction == Reduction::max ? std::max(total, value) : total + value;
  }
  return total;
}

// Compares elements [begin, begin + count) with the serial result.
void check(std::span<const std::byte> buffer, Element element, Reduction reduction, int ranks,
           Range range, const std::string& what) {
  const std::size_t width = element_bytes(element);
  for (std::size_t place = range.begin; place < range.begin + range.count; ++place) {
    std::byte right[8];
    put(right, element, serial(place, ranks, reduction));
    if (reduction == Reduction::mean) {
      const float mean = float(serial(place, ranks, reduction)) * float(1.0 / ranks);
      std::uint32_t bits = std::bit_cast<std::uint32_t>(mean);
      bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
      if (element == Element::f32) std::memcpy(right, &mean, 4);
      if (element == Element::bf16) std::memcpy(right, &bits, 2);
    }
    if (std::memcmp(right, buffer.data() + place * width, width) != 0)
      throw std::runtime_error(fmt::format("{}: element {} is wrong", what, place));
  }
}

struct Shape {
  Element element;
  Reduction reduction;
  std::size_t count;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {Element::f32, Reduction::sum, 0},      {Element::f32, Reduction::sum, 1},
      {Element::f32, Reduction::sum, 3},      {Element::f32, Reduction::mean, 257},
      {Element::f32, Reduction::sum, 10'007}, {Element::f32, Reduction::max, 1'000},
      {Element::bf16, Reduction::sum, 5},     {Element::bf16, Reduction::sum, 4'099},
      {Element::bf16, Reduction::mean, 640},  {Element::i64, Reduction::sum, 1'031},
      {Element::i64, Reduction::max, 77},
  };
  return all;
}

// Whether the algorithm can do it: a transport's own library may be missing, and knows not every
// element.
bool is_offered(const Algorithm& algorithm, const Shape& shape, Transport& transport) {
  if (algorithm.run != native) return true;
  return offers_native(transport) && shape.element != Element::bf16 &&
         (shape.element == Element::i64 || shape.reduction != Reduction::max);
}

void try_shape(Communicator& communicator, const Shape& shape, const Algorithm& algorithm,
               std::span<std::byte> memory) {
  const std::span<std::byte> buffer = memory.first(shape.count * element_bytes(shape.element));
  fill(buffer, shape.element, communicator.index());
  communicator.all_reduce(buffer, shape.element, shape.reduction, algorithm);
  check(buffer, shape.element, shape.reduction, communicator.size(), {0, shape.count},
        fmt::format("{} of {} {}, {} ranks, rank {}", algorithm.name, shape.count,
                    element_name(shape.element), communicator.size(), communicator.index()));
}

class CollectivesContract : public testing::TestWithParam<CollectiveWorld> {};

TEST_P(CollectivesContract, EveryAlgorithmAgreesWithASerialSum) {
  for (int size = 1; size <= 9; ++size)
    GetParam().run(size, [](World world) {
      // Segments of 1,000 bytes: many of them, and no multiple of an element of 8 bytes is lost.
      Communicator communicator(world.runtime, world.transport,
                                {.timeout_s = 60, .segment_bytes = 1000});
      for (const Algorithm& algorithm : algorithms()) {
        std::vector<std::byte> memory(100'000);
        for (const Shape& shape : shapes())
          if (is_offered(algorithm, shape, world.transport))
            try_shape(communicator, shape, algorithm, memory);
      }
      communicator.barrier();
      world.transport.close(60);
    });
}

void try_large(const CollectiveWorld& where, int size, std::size_t count) {
  where.run(size, [count](World world) {
    Communicator communicator(world.runtime, world.transport);
    const Shape shape{Element::f32, Reduction::sum, count};
    std::vector<std::byte> elsewhere(shape.count * 4);
    HostMemory* const host = world.transport.host_memory();
    const std::span<std::byte> shared = host ? host->allocate(shape.count * 4) : elsewhere;
    for (const Algorithm& algorithm : algorithms()) {
      if (!is_offered(algorithm, shape, world.transport)) continue;
      try_shape(communicator, shape, algorithm, elsewhere);
      try_shape(communicator, shape, algorithm, shared);
    }
    communicator.barrier();
    world.transport.close(60);
  });
}

TEST_P(CollectivesContract, BuffersInSharedMemoryAndElsewhere) {
  for (int size : {1, 2, 3, 4}) try_large(GetParam(), size, 300'001);
}

// More than a piece that is staged through shared memory.
TEST_P(CollectivesContract, LargeBuffersSlow) {
  for (int size : {2, 3, 5}) try_large(GetParam(), size, 5'000'003);
}

TEST_P(CollectivesContract, ScatterGatherBroadcastReduceBarrier) {
  for (int size = 1; size <= 9; ++size)
    GetParam().run(size, [](World world) {
      Communicator communicator(world.runtime, world.transport, {.segment_bytes = 1000});
      const int n = communicator.size(), me = communicator.index();
      for (std::size_t count :
           {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{3001}}) {
        std::vector<std::byte> buffer(count * 4);
        fill(buffer, Element::f32, me);
        communicator.reduce_scatter(buffer, Element::f32, Reduction::mean);
        check(buffer, Element::f32, Reduction::mean, n, communicator.chunk_of(count, me),
              "reduce_scatter");
        communicator.all_gather(buffer, Element::f32);
        check(buffer, Element::f32, Reduction::mean, n, {0, count}, "all_gather");
        for (int root = 0; root < n; ++root) {
          fill(buffer, Element::f32, me);
          communicator.reduce(buffer, Element::f32, Reduction::sum, root);
          if (me == root) check(buffer, Element::f32, Reduction::sum, n, {0, count}, "reduce");
          communicator.broadcast(buffer, root);
          check(buffer, Element::f32, Reduction::sum, n, {0, count}, "broadcast");
        }
      }
      communicator.barrier();
      world.transport.close(60);
    });
}

TEST_P(CollectivesContract, GroupsOfSomeRanks) {
  GetParam().run(5, [](World world) {
    const int me = world.transport.rank();
    const std::vector<int> ranks = me % 2 == 0 ? std::vector{4, 0, 2} : std::vector{1, 3};
    Communicator all(world.runtime, world.transport);
    Communicator some(world.runtime, world.transport, {.ranks = ranks, .channel = 1});
    std::vector<float> values(1000, float(me));
    some.all_reduce(values);
    expect(values[999] == (me % 2 == 0 ? 6.0f : 4.0f), "sum of a group");
    all.all_reduce(values, Reduction::max);
    expect(values[0] == 6.0f, "maximum of all");
    all.barrier();
    world.transport.close(60);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, CollectivesContract, testing::ValuesIn(collective_worlds()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace convoy
