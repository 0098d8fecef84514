#include "sync/wire_format.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "sync/collective_worlds.h"

namespace convoy {
namespace {

using ::testing::HasSubstr;

void expect(bool held, const std::string& text) {
  if (!held) throw std::runtime_error(text);
}

// A number in [-1, 1) that depends on all of its arguments.
float scatter(std::size_t place, int rank, int step = 0) {
  std::uint64_t bits = (place * 8 + std::size_t(rank)) * 1024 + std::size_t(step) + 1;
  bits *= 0x9e3779b97f4a7c15;
  bits ^= bits >> 29;
  bits *= 0xbf58476d1ce4e5b9;
  return float(std::int32_t(bits >> 32)) * 0x1p-31f;
}

// Whole numbers whose sums are exact in every order.
float whole(std::size_t place, int rank) { return std::round(100 * scatter(place, rank)); }

double norm(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += double(value) * value;
  return std::sqrt(squares);
}

void expect_same_on_all(Communicator& communicator, std::span<const float> values,
                        const std::string& what) {
  std::int64_t hash = 0;
  for (const float value : values)
    hash =
        std::int64_t((std::uint64_t(hash) ^ std::bit_cast<std::uint32_t>(value)) * 1099511628211u);
  hash >>= 1;  // so that its negative is a number, too
  std::int64_t extremes[] = {hash, -hash};
  communicator.all_reduce(extremes, Reduction::max);
  expect(extremes[0] == hash && extremes[1] == -hash, what + ": ranks have different bytes");
}

constexpr std::size_t kArena = 6000;

class WireFormatContract : public testing::TestWithParam<std::tuple<CollectiveWorld, std::string>> {
 protected:
  void run(int size, const RankBody& body) { std::get<0>(GetParam()).run(size, body); }
  std::string text() const { return std::get<1>(GetParam()); }
};

// How far the sum may be from the exact one in the first call; negative: as far as it likes.
double tolerance(const std::string& format, double magnitudes, int ranks) {
  if (format == "f32") return 0;
  if (format == "bf16") return magnitudes * ranks / 256;
  return -1;
}

TEST_P(WireFormatContract, AllRanksHaveTheSameBytesAndTheSum) {
  for (int size = 1; size <= 5; ++size)
    run(size, [&](World world) {
      Communicator communicator(world.runtime, world.transport, {.segment_bytes = 1000});
      const auto format = make_wire_format(text(), kArena);
      const int me = communicator.index();
      for (const std::size_t count : {0, 1, 7, 8, 33, 1000, 1024, 1025, 5000, 3}) {
        const std::size_t begin = count % 997;
        std::vector<float> values(count);
        for (std::size_t i = 0; i < count; ++i) values[i] = whole(i, me);
        format->sum(communicator, begin, values);
        const std::string what = fmt::format("{} of {} values, {} ranks", text(), count, size);
        expect_same_on_all(communicator, values, what);
        for (std::size_t i = 0; i < count; ++i) {
          double exact = 0, magnitudes = 0;
          for (int rank = 0; rank < size; ++rank) {
            exact += double(whole(i, rank));
            magnitudes += std::abs(double(whole(i, rank)));
          }
          const double allowed = tolerance(text(), magnitudes, size);
          expect(allowed < 0 || std::abs(exact - double(values[i])) <= allowed,
                 fmt::format("{}: value {} is {}, not {}", what, i, values[i], exact));
        }
      }
      communicator.barrier();
      world.transport.close(60);
    });
}

// Nothing is lost: what all calls gave and what is left over is what went in.
TEST_P(WireFormatContract, SumsAndResidualsAreWhatWentIn) {
  for (const int size : {1, 2, 3, 5})
    run(size, [&](World world) {
      Communicator communicator(world.runtime, world.transport);
      const auto format = make_wire_format(text(), kArena);
      const int me = communicator.index();
      constexpr std::size_t kCut = 1500;  // two ranges, in turns
      std::vector<double> given(kArena), taken(kArena);
      for (int step = 0; step < 40; ++step)
        for (const auto& [begin, end] :
             {std::pair{kCut, kArena}, std::pair{std::size_t{0}, kCut}}) {
          std::vector<float> values(end - begin);
          for (std::size_t i = begin; i < end; ++i) {
            values[i - begin] = scatter(i, me, step);
            for (int rank = 0; rank < size; ++rank) given[i] += double(scatter(i, rank, step));
          }
          format->sum(communicator, begin, values);
          for (std::size_t i = begin; i < end; ++i) taken[i] += double(values[i - begin]);
        }
      std::vector<float> left(kArena);
      std::copy(format->residual().begin(), format->residual().end(), left.begin());
      communicator.all_reduce(left);
      const double allowed = text() == "bf16" ? 40.0 * size * size / 512 : 1e-3;
      for (std::size_t i = 0; i < kArena; ++i)
        expect(std::abs(given[i] - taken[i] - double(left[i])) < allowed,
               fmt::format("{}, {} ranks: of {} at {} came {}, and {} is left", text(), size,
                           given[i], i, taken[i], left[i]));
      communicator.barrier();
      world.transport.close(60);
    });
}

std::vector<CollectiveWorld> some_worlds() {
  std::vector<CollectiveWorld> some;
  for (const CollectiveWorld& world : collective_worlds())
    if (world.name == "inproc_one_host" || world.name == "inproc_hosts_of_2" ||
        world.name == "sim_alone" || world.name == "shm_processes")
      some.push_back(world);
  return some;
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, WireFormatContract,
    testing::Combine(testing::ValuesIn(some_worlds()),
                     testing::Values("f32", "bf16", "topk", "topk:0.3", "1bit")),
    [](const auto& tested) {
      std::string name = std::get<0>(tested.param).name + "_" + std::get<1>(tested.param);
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
      return name;
    });

class LossyFormat : public testing::TestWithParam<std::string> {
 protected:
  // Small: without numbers that travel far, and deterministic.
  void run(int size, const RankBody& body) { run_sim({.ranks = size}, {}, body); }
};

// The mean of what a constant gradient gives approaches it, about as 1 / steps: the residual hardly
// grows.
TEST_P(LossyFormat, AConstantGradientArrivesInTheEnd) {
  run(3, [&](World world) {
    Communicator communicator(world.runtime, world.transport);
    const auto format = make_wire_format(GetParam(), kArena);
    std::vector<double> total(kArena);
    std::vector<float> exact(kArena), values(kArena), error(kArena);
    for (std::size_t i = 0; i < kArena; ++i)
      exact[i] = scatter(i, 0) + scatter(i, 1) + scatter(i, 2);
    double early = 0, early_residual = 0;
    for (int step = 1; step <= 1200; ++step) {
      for (std::size_t i = 0; i < kArena; ++i) values[i] = scatter(i, communicator.index());
      format->sum(communicator, 0, values);
      for (std::size_t i = 0; i < kArena; ++i) {
        total[i] += double(values[i]);
        error[i] = float(total[i] / step) - exact[i];
      }
      if (step == 300) {
        early = norm(error);
        early_residual = norm(format->residual());
      }
    }
    const double late = norm(error);
    expect(late < 0.1 * norm(exact), fmt::format("error {} of {}", late, norm(exact)));
    if (!format->residual().empty()) {
      expect(late < 0.5 * early,
             fmt::format("error {} after 300 steps, {} after 1,200", early, late));
      expect(norm(format->residual()) < 2 * early_residual, "the residual grows with the steps");
    }
    communicator.barrier();
    world.transport.close(60);
  });
}

// Every rank pulls towards a point of its own, with curvatures from 0.05 to 1; the minimum is where
// the pulls cancel out, and no rank's own gradient is zero there.
TEST_P(LossyFormat, DescentConvergesOnAQuadratic) {
  constexpr std::size_t kSize = 3000;
  run(4, [&](World world) {
    Communicator communicator(world.runtime, world.transport);
    const auto format = make_wire_format(GetParam(), kSize);
    const int n = communicator.size(), me = communicator.index();
    std::vector<float> point(kSize), gradient(kSize), distance(kSize);
    std::vector<float> goal(kSize);
    for (std::size_t i = 0; i < kSize; ++i)
      for (int rank = 0; rank < n; ++rank) goal[i] += (1 + scatter(i, rank)) / float(n);
    for (int step = 0; step < 1500; ++step) {
      for (std::size_t i = 0; i < kSize; ++i) {
        const float curvature = 0.525f + 0.475f * scatter(i, 7);
        gradient[i] = curvature * (point[i] - 1 - scatter(i, me));
      }
      // In two buckets, the last first.
      format->sum(communicator, kSize / 3, std::span(gradient).subspan(kSize / 3));
      format->sum(communicator, 0, std::span(gradient).first(kSize / 3));
      const float rate = 0.2f / (1 + 0.01f * float(step)) / float(n);
      for (std::size_t i = 0; i < kSize; ++i) point[i] -= rate * gradient[i];
    }
    for (std::size_t i = 0; i < kSize; ++i) distance[i] = point[i] - goal[i];
    expect_same_on_all(communicator, point, "weights");
    expect(norm(distance) < 0.05 * norm(goal),
           fmt::format("{} from a goal at {}", norm(distance), norm(goal)));
    communicator.barrier();
    world.transport.close(60);
  });
}

INSTANTIATE_TEST_SUITE_P(Formats, LossyFormat, testing::Values("f32", "bf16", "topk:0.05", "1bit"),
                         [](const auto& tested) {
                           return tested.param.substr(0, tested.param.find(':'));
                         });

double seconds_of(const std::string& text, std::size_t count, int ranks, bool carries_bytes) {
  return run_sim({.ranks = ranks, .network = {.latency_s = 0, .bytes_per_s = 1e6}},
                 {.carries_bytes = carries_bytes},
                 [&](World world) {
                   Communicator communicator(world.runtime, world.transport,
                                             {.algorithm = "ring", .segment_bytes = 1000});
                   const auto format = make_wire_format(text, count);
                   std::vector<float> values(carries_bytes ? count : 0, 1.0f);
                   // Without content, nobody may touch them.
                   auto* nowhere = reinterpret_cast<float*>(std::uintptr_t{4096});
                   format->sum(communicator, 0,
                               carries_bytes ? std::span(values) : std::span(nowhere, count));
                   world.transport.close(60);
                 })
      .seconds;
}

TEST(WireFormat, WithoutContentTheSizesOnTheWireAreTheSame) {
  constexpr std::size_t kCount = 100'003;
  for (const std::string text : {"f32", "bf16", "topk:0.02", "1bit"})
    for (const int ranks : {1, 2, 4}) {
      const double seconds = seconds_of(text, kCount, ranks, true);
      EXPECT_EQ(seconds, seconds_of(text, kCount, ranks, false)) << text << ", " << ranks;
      const double expected =
          double(make_wire_format(text, kCount)->wire_bytes(kCount, ranks)) / 1e6;
      // Whoever waits for the first segment waits for a link that is otherwise idle.
      EXPECT_GE(seconds, 0.999 * expected) << text << ", " << ranks;
      EXPECT_LE(seconds, 1.1 * expected + 0.02) << text << ", " << ranks;
    }
  EXPECT_EQ(make_wire_format("f32", kCount)->wire_bytes(1000, 4), 6000u);
  EXPECT_EQ(make_wire_format("bf16", kCount)->wire_bytes(1000, 4), 3000u);
  EXPECT_EQ(make_wire_format("topk", kCount)->wire_bytes(1000, 4), 3 * 10 * 8u);
  EXPECT_EQ(make_wire_format("1bit", kCount)->wire_bytes(1024 + 33, 4), 3 * (4 * 40 + 16u));
  EXPECT_EQ(make_wire_format("1bit", kCount)->wire_bytes(0, 4), 0u);
  EXPECT_EQ(make_wire_format("topk", kCount)->wire_bytes(0, 4), 0u);
}

// What one rank alone gets for its values, and what it is left with.
struct Outcome {
  std::vector<float> values, residual;
};
Outcome alone(const std::string& text, std::vector<float> values) {
  Outcome outcome{values, {}};
  run_inproc(1, {}, [&](World world) {
    Communicator communicator(world.runtime, world.transport);
    const auto format = make_wire_format(text, values.size());
    format->sum(communicator, 0, outcome.values);
    outcome.residual.assign(format->residual().begin(), format->residual().end());
    world.transport.close(60);
  });
  return outcome;
}

void expect_largest_by_topk(const std::vector<float>& values, const std::string& what) {
  const std::size_t count = values.size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(values[a]) > std::abs(values[b]);
  });
  for (const double share : {0.001, 0.01, 0.1, 0.77, 1.0}) {
    std::vector<float> expected(count), left = values;
    for (std::size_t i = 0; i < std::max(1.0, std::ceil(share * double(count))); ++i) {
      expected[order[i]] = values[order[i]];
      left[order[i]] = 0;
    }
    const Outcome outcome = alone(fmt::format("topk:{}", share), values);
    EXPECT_EQ(outcome.values, expected) << what << ", " << count << " values, " << share;
    EXPECT_EQ(outcome.residual, left) << what << ", " << count << " values, " << share;
  }
}

TEST(WireFormat, TopkSendsExactlyTheLargestAndOfEqualsTheFirst) {
  for (const std::size_t count : {1, 2, 50, 1000, 100'003}) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = scatter(i, 1) * scatter(i, 2) * scatter(i, 3);
      if (i % 3 == 0) values[i] = std::round(4 * values[i]) / 4;  // many equal ones
      if (i % 11 == 0) values[i] *= 1e-40f;
    }
    expect_largest_by_topk(values, "all sorts");
    expect_largest_by_topk(std::vector<float>(count), "zeros");
    // Whatever values are looked at first, they mislead.
    for (const std::size_t period : {8, 61, 64})
      for (const std::size_t place : {std::size_t{0}, period / 2}) {
        std::vector<float> some_large = values, some_zero = values;
        for (std::size_t i = place; i < count; i += period) {
          some_large[i] += 100;
          some_zero[i] = 0;
        }
        expect_largest_by_topk(some_large, fmt::format("large every {}", period));
        expect_largest_by_topk(some_zero, fmt::format("zero every {}", period));
      }
  }
}

TEST(WireFormat, OneBitGivesTheMeansOfTheSigns) {
  const Outcome outcome = alone("1bit", {1, 3, -2, 0, -4, -6});
  EXPECT_THAT(outcome.values,
              testing::Pointwise(testing::FloatEq(),
                                 std::vector<float>{4 / 3.0f, 4 / 3.0f, -4, 4 / 3.0f, -4, -4}));
  EXPECT_THAT(outcome.residual,
              testing::Pointwise(testing::FloatNear(1e-6f),
                                 std::vector<float>{-1 / 3.0f, 5 / 3.0f, 2, -4 / 3.0f, 0, -2}));
  // A block has means of its own.
  std::vector<float> blocks(256, 2.0f);
  blocks.resize(266, -5.0f);
  EXPECT_EQ(alone("1bit", blocks).values, blocks);
}

TEST(WireFormat, Bf16RoundsToNearestEven) {
  const std::vector<float> values = {1.0f, 1 + 0x1p-8f, 1 + 0x3p-8f, 1 + 0x1.1p-8f, -3.0e38f, 0.0f};
  const std::vector<float> expected = {1.0f, 1.0f, 1 + 0x1p-6f, 1 + 0x1p-7f, -3.0040553e38f, 0.0f};
  const Outcome outcome = alone("bf16", values);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(outcome.values[i], expected[i], std::abs(expected[i]) * 1e-4f) << i;
  EXPECT_EQ(outcome.values[1], 1.0f);
  EXPECT_TRUE(outcome.residual.empty());
  EXPECT_TRUE(std::isnan(alone("bf16", {NAN}).values[0]));
}

// A gradient that is not a number must not be mistaken for a small one.
TEST(WireFormat, WhatIsNotANumberArrivesAsSuch) {
  std::vector<float> values(300, 0.5f);
  values[123] = NAN;
  for (const std::string text : {"f32", "bf16", "topk:0.01", "1bit"})
    EXPECT_TRUE(std::isnan(alone(text, values).values[123])) << text;
}

std::string complaint(const std::string& text) {
  try {
    make_wire_format(text, 10);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(WireFormat, WrongTextsAreExplained) {
  for (const std::string& name : wire_formats()) EXPECT_EQ(complaint(name), "") << name;
  EXPECT_EQ(complaint("bf61"),
            "--wire bf61: unknown wire format; did you mean bf16? Known: f32, bf16, topk:SHARE, "
            "1bit");
  EXPECT_THAT(complaint(""), HasSubstr("--wire \"\": unknown wire format"));
  EXPECT_EQ(complaint("f32:2"),
            "--wire f32:2: f32 takes nothing after a colon (topk alone does); use --wire f32");
  for (const std::string share : {"", "0", "-0.1", "1.01", "nan", "inf", "0.1x", "one"})
    EXPECT_THAT(complaint("topk:" + share),
                HasSubstr("the share of values to send is \"" + share + "\": expected a number"));
}

}  // namespace
}  // namespace convoy
