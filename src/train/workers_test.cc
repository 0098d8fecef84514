// Several workers against one: the same answer, in every world, by every algorithm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "nn/checkpoint.h"
#include "sync/algorithms.h"
#include "train/test_runs.h"
#include "world/inproc/inproc.h"
#include "world/sim/sim.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

class SeveralWorkers : public SmallRuns {
 protected:
  TrainConfig config(const std::string& model) {
    TrainConfig made = SmallRuns::config(model);
    made.schedule = "constant";
    return made;
  }

  TrainResult run_real(const TrainConfig& config, int workers, const std::string& resume = {}) {
    TrainResult result;
    SharedData data;
    run_inproc(workers, {}, [&](World world) { run_one(config, resume, data, 0, world, result); });
    return result;
  }
  TrainResult run_simulated(const TrainConfig& config, const Cluster& cluster) {
    TrainResult result;
    SharedData data;
    seconds_ = run_sim(cluster, {.stack_bytes = 1 << 20}, [&](World world) {
                 run_one(config, {}, data, 1000, world, result);
               }).seconds;
    return result;
  }

  // Any number of workers, in two worlds, and every algorithm, have the weights of one.
  TrainConfig invariant(const char* model) {
    TrainConfig made = config(model);
    made.invariant = true;
    made.lookahead = "2:0.9";
    return made;
  }
  void expect_same_bits_of_any_number(const char* model) {
    const std::string expected = weights(run_real(invariant(model), 1));
    for (const int workers : {2, 3, 4, 8})
      EXPECT_EQ(weights(run_real(invariant(model), workers)), expected) << workers;
    EXPECT_EQ(weights(run_simulated(invariant(model), {.ranks = 4})), expected);
  }
  void expect_same_bits_by_every_algorithm(const char* model) {
    const std::string expected = weights(run_real(invariant(model), 1));
    for (const char* algorithm : {"ring", "halving_doubling", "tree", "torus", "hierarchical"}) {
      TrainConfig other = invariant(model);
      other.algorithm = algorithm;
      EXPECT_EQ(weights(run_real(other, 3)), expected) << algorithm;
    }
  }

  double seconds_ = 0;  // of the last simulated run

 private:
  void run_one(const TrainConfig& config, const std::string& resume, SharedData& data,
               double images_per_s, World world, TrainResult& result) {
    TrainRequest request{.config = config, .given = {}, .resume = resume};
    request.shared_data = &data;
    request.images_per_s = images_per_s;
    TrainResult own = train(request, world, interrupt_, quiet_);
    if (own.leads) result = std::move(own);
  }
};

// The largest difference between two runs' weights, over the largest weight.
double difference(const TrainResult& a, const TrainResult& b, const TrainConfig& config) {
  const auto load = [&](const TrainResult& result) {
    const DataSplit data = open_split(config);
    auto model = make_model(config, *data.train, 1);
    load_weights(result.folder / "final.safetensors", model->network(), model->parameters(),
                 LoadMode::strict);
    return model;
  };
  const auto first = load(a), second = load(b);
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < first->parameters().values().size(); ++i) {
    const double x = first->parameters().values()[i], y = second->parameters().values()[i];
    most = std::max(most, std::abs(x - y));
    largest = std::max(largest, std::abs(x));
  }
  return most / largest;
}

TEST_F(SeveralWorkers, GiveWhatOneGives) {
  const auto made = [&] {
    TrainConfig base = config("shallow");
    base.lookahead = "2:0.9";
    return base;
  };
  const TrainConfig base = made();
  const TrainResult one = run_real(base, 1);
  for (const int workers : {2, 3, 4, 8}) {
    const TrainResult several = run_real(made(), workers);
    EXPECT_LT(difference(one, several, base), 1e-5) << workers;
    EXPECT_NEAR(several.answer.at("train_loss"), one.answer.at("train_loss"), 1e-5) << workers;
    EXPECT_EQ(several.answer.at("seen"), 70);
    EXPECT_EQ(several.answer.at("missing"), 0);
    EXPECT_EQ(several.answer.at("twice"), 0);
    EXPECT_EQ(several.answer.at("workers"), workers);
  }
}

TEST_F(SeveralWorkers, GiveItByEveryAlgorithmAndWire) {
  const TrainConfig base = config("shallow");
  const TrainResult one = run_real(base, 1);
  for (const char* algorithm :
       {"ring", "halving_doubling", "tree", "reduce_broadcast", "torus", "hierarchical"}) {
    TrainConfig other = config("shallow");
    other.algorithm = algorithm;
    EXPECT_LT(difference(one, run_real(other, 3), base), 1e-5) << algorithm;
  }
  for (const bool overlap : {true, false}) {
    TrainConfig other = config("shallow");
    other.overlap = overlap;
    other.bucket_mib = 0.01;
    EXPECT_LT(difference(one, run_real(other, 2), base), 1e-5) << overlap;
  }
  TrainConfig rounded = config("shallow");
  rounded.wire = "bf16";
  EXPECT_LT(difference(one, run_real(rounded, 2), base), 1e-2);
}

TEST_F(SeveralWorkers, WithUnevenSharesGiveTheSame) {
  const TrainConfig base = config("shallow");
  const TrainResult one = run_real(base, 1);
  for (const char* balance : {"5:1", "1:0", "23:1"}) {
    TrainConfig other = config("shallow");
    other.balance = balance;
    const TrainResult uneven = run_real(other, 2);
    EXPECT_LT(difference(one, uneven, base), 1e-5) << balance;
    EXPECT_EQ(uneven.answer.at("seen"), 70) << balance;
  }
}

TEST_F(SeveralWorkers, SlowShareStatisticsOfBatchNorm) {
  const TrainConfig base = config("airbench");
  const TrainResult one = run_real(base, 1);
  for (const char* balance : {"1:1:1", "7:0:2"}) {
    TrainConfig other = config("airbench");
    other.batch_norm = "sync";
    other.balance = balance;
    const TrainResult several = run_real(other, 3);
    EXPECT_LT(difference(one, several, base), 1e-3) << balance;
    EXPECT_NEAR(several.answer.at("test_loss"), one.answer.at("test_loss"), 1e-2) << balance;
  }
}

TEST_F(SeveralWorkers, AreBitIdenticalInInvariantMode) {
  expect_same_bits_of_any_number("shallow");
}

TEST_F(SeveralWorkers, SlowAreBitIdenticalByEveryAlgorithm) {
  expect_same_bits_by_every_algorithm("shallow");
}

TEST_F(SeveralWorkers, SlowAreBitIdenticalWithBatchNorm) {
  expect_same_bits_of_any_number("airbench");
  expect_same_bits_by_every_algorithm("airbench");
}

TEST_F(SeveralWorkers, SlowGoOnWithTheSameBitsAsAnyNumber) {
  TrainConfig whole = config("airbench");
  whole.invariant = true;
  const std::string expected = weights(run_real(whole, 2));
  TrainConfig half = config("airbench");
  half.invariant = true;
  half.epochs = 1;
  const TrainResult first = run_real(half, 4);
  half.epochs = 2;
  TrainResult second;
  SharedData data;
  const InterruptGuard interrupt;
  run_inproc(3, {}, [&](World world) {
    TrainRequest request{.config = half, .given = {}, .resume = first.folder.string()};
    for (const ConfigField& field : config_fields())
      if (field.name == "epochs") request.given.push_back(&field);
    request.shared_data = &data;
    TrainResult own = train(request, world, interrupt, stderr);
    if (own.leads) second = std::move(own);
  });
  EXPECT_EQ(weights(second), expected);
}

TEST_F(SeveralWorkers, OfASimulatedClusterTakeTheTimeTheyWould) {
  TrainConfig made = config("shallow");
  made.batch = 20;
  const Cluster fast{.ranks = 4, .network = {.latency_s = 1e-9, .bytes_per_s = 1e15}};
  const TrainResult first = run_simulated(made, fast);
  // 70 samples by four workers of 1,000 images a second, for two epochs; evaluation takes no time.
  EXPECT_NEAR(seconds_, 2 * 70.0 / 4 / 1000, 0.004);
  TrainConfig again = made;
  again.out += "again";
  const TrainResult second = run_simulated(again, fast);
  EXPECT_EQ(weights(first), weights(second));
  const Cluster slow{.ranks = 4, .network = {.latency_s = 1e-3, .bytes_per_s = 1e8}};
  again.out += "slow";
  run_simulated(again, slow);
  EXPECT_GT(seconds_, 0.1);  // 1.7 MB of gradients in eight steps
}

TEST_F(SeveralWorkers, AreRefusedWhereTheyCannotWork) {
  const auto error_of = [&](TrainConfig made, int workers) -> std::string {
    try {
      run_real(made, workers);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  TrainConfig few = config("shallow");
  few.batch = 2;
  EXPECT_THAT(error_of(few, 3), HasSubstr("--workers 3 is more than the 2 samples of a batch"));
  TrainConfig shards = config("shallow");
  shards.invariant = true;
  shards.virtual_shards = 2;
  EXPECT_THAT(error_of(shards, 3), HasSubstr("--virtual-shards 2"));
  TrainConfig weights = config("shallow");
  weights.balance = "1:2";
  EXPECT_THAT(error_of(weights, 3), HasSubstr("there are 3 workers"));
}

TEST_F(SeveralWorkers, EndTogetherWhenOneMeetsANumberThatIsNone) {
  TrainConfig wild = config("shallow");
  wild.lr = 1e6;
  wild.epochs = 50;
  std::string text;
  try {
    run_real(wild, 2);
  } catch (const std::exception& error) {
    text = error.what();
  }
  EXPECT_THAT(text, HasSubstr("is not a finite number"));
  EXPECT_THAT(text, HasSubstr("worker "));
  EXPECT_THAT(text, HasSubstr("convoy replay"));
}

}  // namespace
}  // namespace convoy
