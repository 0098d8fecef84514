// Training with parameter servers against training without: the same bits where that is promised,
// in every policy, and the same again in the simulated world.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "train/test_runs.h"
#include "world/inproc/inproc.h"
#include "world/sim/sim.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Servers : public SmallRuns {
 protected:
  TrainConfig with_servers(const std::string& model, int servers, const std::string& policy) {
    TrainConfig made = config(model);
    made.sync = "ps";
    made.servers = servers;
    made.policy = policy;
    made.slice_mib = 0.01;
    return made;
  }

  TrainResult run(const TrainConfig& config, int workers, const std::string& resume = {}) {
    TrainResult result;
    SharedData data;
    run_inproc(workers + int(config.servers), {},
               [&](World world) { run_one(config, resume, data, 0, world, result); });
    return result;
  }
  TrainResult simulate(const TrainConfig& config, int workers, const Cluster& cluster = {}) {
    TrainResult result;
    SharedData data;
    Cluster used = cluster;
    used.ranks = workers + int(config.servers);
    run_sim(used, {.stack_bytes = 1 << 20}, [&](World world) {
      run_one(config, {}, data, world.transport.rank() < workers ? 1000 : 0, world, result);
    });
    return result;
  }

  static const nlohmann::json& servers_of(const TrainResult& result) {
    return result.answer.at("parameter_servers");
  }
  static void expect_whole(const TrainResult& result) {
    EXPECT_EQ(result.answer.at("seen"), 70);
    EXPECT_EQ(result.answer.at("missing"), 0);
    EXPECT_EQ(result.answer.at("twice"), 0);
  }

  std::string error_of(const TrainConfig& made, int workers) {
    try {
      run(made, workers);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

 private:
  void run_one(const TrainConfig& config, const std::string& resume, SharedData& data,
               double images_per_s, World world, TrainResult& result) {
    TrainRequest request{.config = config, .given = {}, .resume = resume};
    for (const ConfigField& field : config_fields())
      if (!resume.empty() && (field.name == "epochs" || field.name == "servers"))
        request.given.push_back(&field);
    request.shared_data = &data;
    request.images_per_s = images_per_s;
    TrainResult own = train(request, world, interrupt_, quiet_);
    if (own.leads) result = std::move(own);
  }
};

TEST_F(Servers, OfOneWorkerAreWhatItIsAlone) {
  const TrainResult alone = run(config("shallow"), 1);
  for (const char* policy : {"sync", "async", "ssp:2", "staleness_aware", "dc"}) {
    const TrainResult served = run(with_servers("shallow", 3, policy), 1);
    EXPECT_EQ(weights(served), weights(alone)) << policy;
    expect_whole(served);
    EXPECT_EQ(served.answer.at("servers"), 3);
    EXPECT_EQ(served.answer.at("steps"), alone.answer.at("steps"));
    EXPECT_NEAR(served.answer.at("train_loss"), alone.answer.at("train_loss"), 1e-6);
    EXPECT_EQ(served.answer.at("test_accuracy"), alone.answer.at("test_accuracy"));
  }
}

TEST_F(Servers, EqualAllReduceBitForBit) {
  TrainConfig made = config("shallow");
  made.invariant = true;
  TrainConfig served = with_servers("shallow", 2, "sync");
  served.invariant = true;
  EXPECT_EQ(weights(run(served, 3)), weights(run(made, 2)));
}

TEST_F(Servers, SlowOfAnyNumberEqualAllReduceBitForBit) {
  TrainConfig made = config("shallow");
  made.invariant = true;
  const std::string expected = weights(run(made, 2));
  for (const char* policy : {"sync", "ssp:0"})
    for (const auto& [servers, workers] : {std::pair{1, 1}, {1, 3}, {2, 2}, {4, 4}}) {
      TrainConfig served = with_servers("shallow", servers, policy);
      served.invariant = true;
      EXPECT_EQ(weights(run(served, workers)), expected) << policy << servers << workers;
    }
  TrainConfig served = with_servers("shallow", 2, "sync");
  served.invariant = true;
  EXPECT_EQ(weights(simulate(served, 3)), expected);
}

TEST_F(Servers, SlowEqualAllReduceBitForBitWithBatchNormAndEveryOptimizer) {
  for (const char* optimizer : {"sgd", "adam", "lars"}) {
    TrainConfig made = config("airbench");
    made.invariant = true;
    made.optimizer = optimizer;
    const std::string expected = weights(run(made, 2));
    for (const auto& [servers, workers] : {std::pair{1, 2}, {3, 4}}) {
      TrainConfig served = with_servers("airbench", servers, "sync");
      served.invariant = true;
      served.optimizer = optimizer;
      served.slice_mib = 0.5;
      EXPECT_EQ(weights(run(served, workers)), expected) << optimizer << servers << workers;
    }
  }
}

TEST_F(Servers, InStepGiveTheSameBitsEveryTime) {
  const std::string first = weights(run(with_servers("shallow", 2, "sync"), 3));
  EXPECT_EQ(weights(run(with_servers("shallow", 2, "sync"), 3)), first);
  EXPECT_EQ(weights(run(with_servers("shallow", 2, "ssp:0"), 3)), first);
  EXPECT_EQ(weights(run(with_servers("shallow", 1, "sync"), 3)), first);
  EXPECT_EQ(weights(simulate(with_servers("shallow", 4, "sync"), 3)), first);
}

// In one slice, which is all that an all-reduce of one bucket sums. In bf16 an all-reduce rounds
// its sums, and servers round weights on their way instead: there all that is promised is the same
// bits every time.
TEST_F(Servers, SlowInWireFormatsEqualAllReduceBitForBit) {
  for (const char* wire : {"topk:0.05", "1bit"}) {
    TrainConfig made = config("shallow");
    made.wire = wire;
    made.bucket_mib = 64;
    TrainConfig served = with_servers("shallow", 1, "sync");
    served.wire = wire;
    served.bucket_mib = served.slice_mib = 64;
    EXPECT_EQ(weights(run(served, 3)), weights(run(made, 3))) << wire;
  }
  TrainConfig rounded = with_servers("shallow", 2, "sync");
  rounded.wire = "bf16";
  const TrainResult result = run(rounded, 3);
  rounded.out += "again";
  EXPECT_EQ(weights(simulate(rounded, 3)), weights(result));
  const std::uint64_t bytes = servers_of(result).at("workers").at(0).at("bytes_out");
  const std::uint64_t whole =
      servers_of(run(with_servers("shallow", 2, "sync"), 3)).at("workers").at(0).at("bytes_out");
  EXPECT_LT(double(bytes), 0.6 * double(whole));
}

TEST_F(Servers, MakeAsManyUpdatesAsTheirPolicySays) {
  for (const char* policy : {"sync", "backup:1", "async", "ssp:1", "staleness_aware", "dc:0.04"}) {
    const TrainResult result = run(with_servers("shallow", 2, policy), 4);
    expect_whole(result);
    const std::int64_t updates = servers_of(result).at("weight_updates");
    const std::int64_t dropped = servers_of(result).at("dropped");
    if (std::string(policy) != "backup:1") {
      EXPECT_EQ(updates, std::string(policy) == "sync" ? 6 : 24) << policy;
      EXPECT_EQ(dropped, 0) << policy;
    }
    EXPECT_EQ(result.answer.at("steps"), updates);
    EXPECT_GT(servers_of(result).at("push").at("count"), 0);
    ASSERT_EQ(servers_of(result).at("workers").size(), 4u);
    for (const auto& worker : servers_of(result).at("workers")) {
      EXPECT_GT(worker.at("push").at("count"), 0);
      EXPECT_GT(worker.at("bytes_out"), 0);
      EXPECT_GT(worker.at("phases_s").at("forward"), 0);
    }
  }
}

TEST_F(Servers, SlowOfASimulatedClusterRepeatBitForBit) {
  Cluster unequal;
  unequal.speed = {1, 1, 0.2, 1, 1, 1};
  for (const char* policy : {"async", "ssp:1", "backup:1", "staleness_aware", "dc"}) {
    const TrainResult first = simulate(with_servers("shallow", 2, policy), 4, unequal);
    const TrainResult second = simulate(with_servers("shallow", 2, policy), 4, unequal);
    EXPECT_EQ(weights(first), weights(second)) << policy;
    EXPECT_EQ(servers_of(first).at("staleness"), servers_of(second).at("staleness")) << policy;
    expect_whole(first);
  }
}

TEST_F(Servers, GoOnFromACheckpointWithTheSameBits) {
  TrainConfig whole = with_servers("shallow", 2, "sync");
  whole.invariant = true;
  const std::string expected = weights(run(whole, 2));
  TrainConfig half = with_servers("shallow", 3, "sync");
  half.invariant = true;
  half.schedule = whole.schedule = "constant";
  whole.out += "constant";
  const std::string constant = weights(run(whole, 2));
  half.epochs = 1;
  const TrainResult first = run(half, 3);
  half.epochs = 2;
  half.servers = 1;
  EXPECT_EQ(weights(run(half, 4, first.folder.string())), constant);
  EXPECT_NE(constant, expected);
}

// Four asynchronous workers make about four times the updates of one: the schedule must not end
// early.
TEST_F(Servers, GoOnWithFewerWorkersAtTheSamePlaceOfTheSchedule) {
  TrainConfig alone = config("shallow");
  alone.epochs = 3;
  const std::int64_t updates = run(alone, 1).answer.at("steps");
  TrainConfig served = with_servers("shallow", 1, "async");
  served.epochs = 1;
  const TrainResult first = run(served, 4);
  served.epochs = 3;
  const TrainResult second = run(served, 1, first.folder.string());
  EXPECT_EQ(second.answer.at("steps"), updates);
}

TEST_F(Servers, AreRefusedWhereTheyCannotWork) {
  const auto error = [&](const std::string& policy, int servers = 1, int workers = 2) {
    TrainConfig made = with_servers("shallow", servers, policy);
    return error_of(made, workers);
  };
  EXPECT_THAT(error("backup:2"), HasSubstr("--policy backup:2: of 2 workers, at most 1"));
  EXPECT_THAT(error("backup"), HasSubstr("backup needs a number of spare workers"));
  EXPECT_THAT(error("ssp:-1"), HasSubstr("ssp needs a number of steps, 0 or more"));
  EXPECT_THAT(error("sinc"), HasSubstr("did you mean sync?"));
  EXPECT_THAT(error("async:3"), HasSubstr("takes nothing after a colon"));
  EXPECT_THAT(error("dc:-1"), HasSubstr("dc needs a factor"));
  EXPECT_THAT(error("sync", 20), HasSubstr("--servers 20 is more than the"));
  TrainConfig none = with_servers("shallow", 1, "sync");
  none.servers = 0;
  EXPECT_THAT(error_of(none, 2), HasSubstr("--sync ps needs --servers 1 or more"));
  TrainConfig all_reduce = with_servers("shallow", 1, "sync");
  all_reduce.sync = "allreduce";
  EXPECT_THAT(error_of(all_reduce, 2), HasSubstr("--servers 1 needs --sync ps"));
  TrainConfig invariant = with_servers("shallow", 1, "async");
  invariant.invariant = true;
  EXPECT_THAT(error_of(invariant, 2), HasSubstr("--invariant needs --policy sync"));
  TrainConfig wire = with_servers("shallow", 1, "sync");
  wire.wire = "bf61";
  EXPECT_THAT(error_of(wire, 2), HasSubstr("--wire bf61: unknown wire format"));
  wire.wire = "bf16";
  wire.invariant = true;
  EXPECT_THAT(error_of(wire, 2), HasSubstr("--invariant and --wire bf16 exclude each other"));
}

TEST_F(Servers, EndWithAllWorkersWhenOneMeetsANumberThatIsNone) {
  TrainConfig wild = with_servers("shallow", 2, "async");
  wild.lr = 1e6;
  wild.epochs = 50;
  std::string text;
  try {
    run(wild, 2);
  } catch (const std::exception& error) {
    text = error.what();
  }
  EXPECT_THAT(text, HasSubstr("is not a finite number"));
  EXPECT_THAT(text, HasSubstr("convoy replay"));
}

}  // namespace
}  // namespace convoy
