#include "optim/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "kernels/parallel.h"
#include "nn/model.h"
#include "nn/zoo.h"

namespace convoy {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Four parameters, last layer first, each padded with zeros to a multiple of 16 floats.
struct Arena {
  Arena() {
    add("fc.weight", Role::weight, 50'000);  // long enough for several threads
    add("fc.bias", Role::bias, 10);
    add("bn.weight", Role::norm_weight, 64);
    add("conv.weight", Role::weight, 9'001);
  }

  void add(std::string name, Role role, std::size_t count) {
    Parameter parameter;
    parameter.spec.name = std::move(name);
    parameter.spec.role = role;
    parameter.spec.dims = {std::int64_t(count)};
    parameter.begin = values.size();
    parameter.end = parameter.begin + (count + 15) / 16 * 16;
    values.resize(parameter.end);
    gradients.resize(parameter.end);
    for (std::size_t i = 0; i < count; ++i) {
      values[parameter.begin + i] = rng.normal();
      gradients[parameter.begin + i] = rng.normal();
    }
    parameters.push_back(parameter);
  }

  std::unique_ptr<Optimizer> optimizer(const OptimizerOptions& options) {
    return make_optimizer(options, parameters, values, gradients);
  }

  Rng rng{3, Purpose::test};
  std::vector<Parameter> parameters;
  std::vector<float> values, gradients;
};

TEST(Optimizer, BiasesHaveARateOfTheirOwnAndFrozenParametersNone) {
  for (const char* kind : {"sgd", "adam", "lars"}) {
    Arena arena, plain;
    arena.parameters[0].spec.frozen = true;
    const auto before = arena.values;
    arena.optimizer({.kind = kind, .bias_rate = 4})->update(0, arena.values.size(), 0.1f, 1);
    plain.optimizer({.kind = kind})->update(0, plain.values.size(), 0.1f, 1);
    for (const Parameter& parameter : arena.parameters)
      for (std::size_t i = parameter.begin; i < parameter.end; ++i) {
        const float factor = parameter.spec.frozen               ? 0.0f
                             : parameter.spec.role == Role::bias ? 4.0f
                                                                 : 1.0f;
        ASSERT_NEAR(arena.values[i] - before[i], factor * (plain.values[i] - before[i]), 1e-5)
            << kind << " " << parameter.spec.name;
      }
  }
  Arena arena;
  EXPECT_THAT([&] { arena.optimizer({.bias_rate = 0}); },
              ThrowsMessage<ConfigError>(HasSubstr("bias-rate")));
}

TEST(Optimizer, DecaysWeightsOnly) {
  Arena arena;
  const auto before = arena.values;
  std::fill(arena.gradients.begin(), arena.gradients.end(), 0.0f);
  arena.optimizer({.weight_decay = 0.5f})->update(0, arena.values.size(), 0.1f, 1);
  for (const Parameter& parameter : arena.parameters)
    for (std::size_t i = parameter.begin; i < parameter.end; ++i) {
      const float share = parameter.spec.role == Role::weight ? 0.95f : 1.0f;
      ASSERT_FLOAT_EQ(arena.values[i], share * before[i]) << parameter.spec.name;
    }
}

TEST(Optimizer, DecaysEverythingWhereAsked) {
  Arena arena;
  const auto before = arena.values;
  std::fill(arena.gradients.begin(), arena.gradients.end(), 0.0f);
  arena.optimizer({.weight_decay = 0.5f, .decay_all = true})
      ->update(0, arena.values.size(), 0.1f, 1);
  for (std::size_t i = 0; i < before.size(); ++i)
    ASSERT_FLOAT_EQ(arena.values[i], 0.95f * before[i]);
}

TEST(Optimizer, MomentumGathersOverSteps) {
  Arena arena;
  const auto before = arena.values;
  const auto optimizer = arena.optimizer({.momentum = 0.9f});
  for (int update = 1; update <= 3; ++update)
    optimizer->update(0, arena.values.size(), 0.1f, update);
  // Velocities 1, 1.9 and 2.71 times the constant gradient.
  for (std::size_t i = 0; i < before.size(); ++i)
    ASSERT_NEAR(arena.values[i], before[i] - 0.1 * 5.61 * arena.gradients[i], 1e-5);
}

TEST(Optimizer, NesterovLooksAhead) {
  Arena arena;
  const auto before = arena.values;
  arena.optimizer({.momentum = 0.9f, .nesterov = true})->update(0, arena.values.size(), 0.1f, 1);
  for (std::size_t i = 0; i < before.size(); ++i)
    ASSERT_NEAR(arena.values[i], before[i] - 0.1 * 1.9 * arena.gradients[i], 1e-5);
}

TEST(Optimizer, LarsMovesAWeightByAShareOfItsLength) {
  Arena arena;
  const auto before = arena.values;
  const float decay = 0.01f;
  arena.optimizer({.kind = "lars", .weight_decay = decay, .trust = 0.02f})
      ->update(0, arena.values.size(), 0.5f, 1);
  for (const Parameter& parameter : arena.parameters) {
    double w = 0, g = 0;
    for (std::size_t i = parameter.begin; i < parameter.end; ++i) {
      w += double(before[i]) * before[i];
      g += double(arena.gradients[i]) * arena.gradients[i];
    }
    const bool weight = parameter.spec.role == Role::weight;
    const double local = weight ? 0.02 * std::sqrt(w) / (std::sqrt(g) + decay * std::sqrt(w)) : 1.0;
    for (std::size_t i = parameter.begin; i < parameter.end; ++i)
      ASSERT_NEAR(arena.values[i],
                  before[i] - 0.5 * local * (arena.gradients[i] + (weight ? decay * before[i] : 0)),
                  1e-5)
          << parameter.spec.name;
  }
}

TEST(Optimizer, LarsLeavesZeroWeights) {
  Arena arena;
  std::fill(arena.values.begin(), arena.values.end(), 0.0f);
  arena.optimizer({.kind = "lars"})->update(0, arena.values.size(), 1.0f, 1);
  EXPECT_FLOAT_EQ(arena.values[0], -arena.gradients[0]);
}

const OptimizerOptions kAll[] = {
    {.weight_decay = 0.01f},
    {.momentum = 0.9f, .weight_decay = 0.01f},
    {.momentum = 0.9f, .nesterov = true, .weight_decay = 0.01f},
    {.kind = "adam", .weight_decay = 0.01f},
    {.kind = "lars", .momentum = 0.9f, .weight_decay = 0.01f},
};

// One optimizer over the whole arena on one thread, another parameter by parameter on three.
TEST(Optimizer, BitsDoNotDependOnThreadsOrBuckets) {
  const int before = threads();
  for (const OptimizerOptions& options : kAll) {
    Arena one, many;
    const auto optimizer_one = one.optimizer(options), optimizer_many = many.optimizer(options);
    for (int update = 1; update <= 3; ++update) {
      set_threads(1);
      optimizer_one->update(0, one.values.size(), 0.1f, update);
      set_threads(3);
      for (const Parameter& parameter : many.parameters)
        optimizer_many->update(parameter.begin, parameter.end, 0.1f, update);
    }
    EXPECT_EQ(one.values, many.values) << options.kind;
    const auto state_one = optimizer_one->state(), state_many = optimizer_many->state();
    ASSERT_EQ(state_one.size(), state_many.size());
    for (std::size_t i = 0; i < state_one.size(); ++i)
      EXPECT_TRUE(std::equal(state_one[i].second.begin(), state_one[i].second.end(),
                             state_many[i].second.begin()));
  }
  set_threads(before);
}

// The first parameter block by block, as backward hands it over, the rest afterwards.
TEST(Optimizer, MovesWeightsDuringBackwardToTheSameBits) {
  for (const OptimizerOptions& options : kAll) {
    Arena one, other;
    const auto optimizer_one = one.optimizer(options), optimizer_other = other.optimizer(options);
    const Parameter& first = other.parameters[0];
    for (int number = 1; number <= 3; ++number) {
      optimizer_one->update(0, one.values.size(), 0.1f, number);
      WeightUpdate* update = optimizer_other->in_backward(0.1f, number);
      EXPECT_EQ(update == nullptr, options.kind == "lars");  // which needs the whole gradient
      std::vector<ArenaRange> moved;
      if (update) {
        moved.push_back({first.begin, first.end});
        for (std::size_t at = first.begin; at < first.end; at += 1000) {
          const std::size_t count = std::min<std::size_t>(1000, first.end - at);
          update->apply(other.values.data() + at, std::span(other.gradients).subspan(at, count));
        }
      }
      optimizer_other->update_others(moved, 0.1f, number);
    }
    EXPECT_EQ(one.values, other.values) << options.kind;
  }
}

// Every kind of layer that has weights, of which some can be moved by backward and some cannot.
Network many_kinds() {
  Network net("many kinds", {1, 28, 28});
  net.then("conv1", Convolution{.channels = 40, .kernel = 5, .stride = 2});
  net.then("relu1", Relu{});
  net.then("conv2", Convolution{.channels = 64, .kernel = 3, .groups = 2});
  net.then("bn2", BatchNorm{});
  net.then("relu2", Relu{});
  net.then("conv3", Convolution{.channels = 300, .kernel = 1});
  net.then("conv4", Convolution{.channels = 40, .kernel = 3, .padding = 1});
  net.then("relu4", Relu{});
  net.then("fc5", Dense{.features = 100});
  net.then("fc6", Dense{.features = 10});
  return net;
}

TEST(Optimizer, ANetworkMeetsTheSameBitsWhenBackwardMovesItsWeights) {
  const auto train = [](bool at_once) {
    Model model(many_kinds(), {.batch = 8, .precision = Precision::bf16});
    const auto optimizer =
        make_optimizer({.momentum = 0.9f, .weight_decay = 1e-3f}, model.parameters());
    Rng rng(5, Purpose::test);
    for (int number = 1; number <= 3; ++number) {
      Batch batch;
      batch.images.resize(8 * 28 * 28);
      for (float& pixel : batch.images) pixel = rng.normal();
      for (int i = 0; i < 8; ++i) {
        batch.labels.push_back(std::int32_t(rng.below(10)));
        batch.samples.push_back(std::uint32_t(i));
      }
      model.forward(batch);
      auto moved = model.backward({}, at_once ? optimizer->in_backward(0.1f, number) : nullptr);
      EXPECT_EQ(moved.empty(), !at_once);
      optimizer->update_others(std::move(moved), 0.1f, number);
    }
    return model.parameters().sha256();
  };
  EXPECT_EQ(train(true), train(false));
}

TEST(Optimizer, PaddingStaysZeroAndOtherRangesStayAsTheyWere) {
  for (const OptimizerOptions& options : kAll) {
    Arena arena;
    const auto before = arena.values;
    const Parameter& bias = arena.parameters[1];
    const auto optimizer = arena.optimizer(options);
    for (int update = 1; update <= 2; ++update)
      optimizer->update(bias.begin, bias.end, 0.1f, update);
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (i < bias.begin || i >= bias.begin + 10)
        ASSERT_EQ(arena.values[i], before[i]) << i;
      else
        ASSERT_NE(arena.values[i], before[i]) << i;
    }
  }
}

TEST(Optimizer, NamesItsState) {
  Arena arena;
  EXPECT_TRUE(arena.optimizer({})->state().empty());
  EXPECT_EQ(arena.optimizer({.momentum = 0.9f})->state()[0].first, "momentum");
  const auto adam = arena.optimizer({.kind = "adam"});
  EXPECT_EQ(adam->state()[0].first, "adam_m");
  EXPECT_EQ(adam->state()[1].first, "adam_v");
  EXPECT_EQ(adam->state()[1].second.size(), arena.values.size());
}

TEST(Optimizer, RefusesWhatCannotBe) {
  Arena arena;
  const auto refuses = [&](const OptimizerOptions& options, const char* text) {
    EXPECT_THAT([&] { arena.optimizer(options); }, ThrowsMessage<ConfigError>(HasSubstr(text)));
  };
  refuses({.kind = "adamm"}, "did you mean 'adam'");
  refuses({.kind = ""}, "did you mean");
  refuses({.momentum = 1.0f}, "momentum");
  refuses({.momentum = -0.1f}, "momentum");
  refuses({.nesterov = true}, "nesterov");
  refuses({.kind = "adam", .nesterov = true}, "nesterov");
  refuses({.weight_decay = -1}, "weight-decay");
  refuses({.weight_decay = NAN}, "weight-decay");
  refuses({.kind = "adam", .beta1 = 1}, "beta1");
  refuses({.kind = "adam", .epsilon = 0}, "epsilon");
  refuses({.kind = "lars", .trust = 0}, "trust");
}

}  // namespace
}  // namespace convoy
