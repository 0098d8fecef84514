// What runs leave in the store: every nanosecond once, and who was waited for.
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

#include "measure/test_store.h"
#include "train/run.h"
#include "world/inproc/inproc.h"
#include "world/sim/sim.h"

namespace convoy {
namespace {

using nlohmann::json;

class RecordedRun : public StoreTest {
 protected:
  RecordedRun() { quiet_ = std::fopen("/dev/null", "w"); }
  ~RecordedRun() override { std::fclose(quiet_); }

  // 70 samples in batches of 24: three steps an epoch.
  TrainConfig config() {
    TrainConfig config;
    config.model = "shallow";
    config.data = "synthetic:1x28x28:10:70";
    config.batch = 24;
    config.epochs = 2;
    config.precision = "f32";
    config.threads = 1;
    config.checkpoint_every = 0;
    config.out = (folder_ / fmt::format("run{}", runs_++)).string();
    config.store = path_.string();
    return config;
  }

  // load_s by rank, for simulated workers.
  using Loads = std::map<int, double>;
  void train_one(const TrainConfig& config, World world, StoreWriter* writer, double images_per_s,
                 double load_s, const std::string& resume = {}) {
    TrainRequest request{.config = config, .given = {}, .resume = resume};
    request.shared_data = &data_;
    request.writer = writer;
    request.images_per_s = images_per_s;
    request.load_s = load_s;
    for (const ConfigField& field : config_fields())
      if (!resume.empty() && field.name == "epochs") request.given.push_back(&field);
    const TrainResult own = train(request, world, interrupt_, quiet_);
    if (own.leads) answer_ = own.answer;
  }
  void run_simulated(const TrainConfig& config, int workers, const Loads& loads = {}) {
    StoreWriter writer;
    run_sim({.ranks = workers}, {.stack_bytes = 1 << 20}, [&](World world) {
      const auto load = loads.find(world.transport.rank());
      train_one(config, world, &writer, 1000, load == loads.end() ? 0 : load->second);
    });
  }
  // Workers from `far` on have no store of their own.
  void run_real(const TrainConfig& config, int workers, int far = 1000) {
    StoreWriter writer;
    run_inproc(workers, {}, [&](World world) {
      train_one(config, world, world.transport.rank() < far ? &writer : nullptr, 0, 0);
    });
  }
  void resume(const TrainConfig& config, int workers) {
    StoreWriter writer;
    run_inproc(workers, {},
               [&](World world) { train_one(config, world, &writer, 0, 0, config.out); });
  }

  double number(const std::string& sql) {
    Store store(path_, Access::read);
    Statement statement = store.database().prepare(sql);
    return statement.next() ? statement.real(0) : NAN;
  }
  // Each rank's phases sum to its wall time, and so do, but for the time between epochs, its steps.
  void expect_sums(int workers) {
    Store store(path_, Access::read);
    const RunRow run = store.find("latest");
    EXPECT_EQ(run_state(run), "finished");
    EXPECT_LT(answer_.at("ledger_error").get<double>(), 1e-3);
    Statement rows = store.database().prepare(
        "SELECT r.rank, r.wall_s, (SELECT sum(seconds) FROM ledger l WHERE l.run = r.run AND "
        "l.rank "
        "= r.rank), (SELECT min(seconds) FROM ledger l WHERE l.run = r.run AND l.rank = r.rank) "
        "FROM ranks r WHERE r.run = ?1 ORDER BY 1");
    rows.bind(run.id);
    int ranks = 0;
    while (rows.next()) {
      EXPECT_EQ(rows.integer(0), ranks++);
      EXPECT_GT(rows.real(1), 0);
      EXPECT_NEAR(rows.real(2), rows.real(1), 1e-3 * rows.real(1)) << "rank " << rows.integer(0);
      EXPECT_GT(rows.real(3), -1e-6);
      // The leading worker's answer is of the same wall time.
      EXPECT_NEAR(rows.real(1), answer_.at("wall_s").get<double>(),
                  rows.integer(0) == 0 ? 1e-3 * rows.real(1) : 1e9);
    }
    EXPECT_EQ(ranks, workers);
    Statement steps = store.database().prepare(
        "SELECT count(*), min(load_ns), min(forward_ns), min(backward_ns), min(communication_ns), "
        "min(wait_ns), min(update_ns), min(other_ns), count(DISTINCT rank), max(step) FROM steps "
        "WHERE run = ?1");
    steps.bind(run.id);
    ASSERT_TRUE(steps.next());
    EXPECT_EQ(steps.integer(0), 6 * workers);
    for (int column = 1; column <= 7; ++column) EXPECT_GE(steps.integer(column), -1000) << column;
    EXPECT_EQ(steps.integer(8), workers);
    EXPECT_EQ(steps.integer(9), 6);
  }

  json answer_;

 private:
  SharedData data_;
  InterruptGuard interrupt_;
  std::FILE* quiet_ = nullptr;
  int runs_ = 0;
};

TEST_F(RecordedRun, OneWorkerLeavesEverything) {
  run_real(config(), 1);
  expect_sums(1);
  Store store(path_, Access::read);
  const RunRow run = store.find("latest");
  EXPECT_EQ(run.name, answer_.at("run"));
  EXPECT_EQ(run.steps, 6);
  EXPECT_EQ(run.model, "shallow");
  EXPECT_EQ(*run.test_accuracy, answer_.at("test_accuracy").get<double>());
  EXPECT_EQ(run.result.at("weights_sha256"), answer_.at("weights_sha256"));
  const json epochs = store.rows("epochs", run.id);
  ASSERT_EQ(epochs.size(), 2u);
  EXPECT_EQ(epochs[1].at("seen"), 70);
  EXPECT_EQ(epochs[1].at("steps"), 3);
  // Layers with their times: forward and backward by layer sum to the phases.
  EXPECT_GT(store.rows("layers", run.id).size(), 5u);
  EXPECT_NEAR(number("SELECT sum(forward_s) FROM layer_times"),
              number("SELECT sum(seconds) FROM ledger WHERE phase = 'forward'"), 1e-3);
  EXPECT_NEAR(number("SELECT sum(backward_s) FROM layer_times"),
              number("SELECT sum(seconds) FROM ledger WHERE phase = 'backward'"), 1e-2);
  EXPECT_EQ(number("SELECT count(DISTINCT step) FROM spans"), 2);  // 2 and 3
  EXPECT_EQ(number("SELECT count(*) FROM waits"), 0);
}

// The same account in every policy: each nanosecond once.
TEST_F(RecordedRun, LedgersSumToWallTimeSlow) {
  std::vector<std::function<void(TrainConfig&)>> policies = {
      [](TrainConfig&) {},
      [](TrainConfig& c) { c.wire = "bf16"; },
      [](TrainConfig& c) { c.wire = "topk:0.1"; },
      [](TrainConfig& c) { c.overlap = false; },
      [](TrainConfig& c) { c.invariant = true; },
      [](TrainConfig& c) { c.balance = "3:1"; }};
  for (const auto& change : policies) {
    TrainConfig changed = config();
    change(changed);
    run_real(changed, 2);
    expect_sums(2);
    changed.out += "s";
    run_simulated(changed, 2);
    expect_sums(2);
  }
}

TEST_F(RecordedRun, SynchronisedBatchNormIsCommunicationSlow) {
  TrainConfig changed = config();
  changed.model = "resnet18";
  changed.data = "synthetic:3x32x32:10:70";
  changed.batch_norm = "sync";
  changed.epochs = 1;
  run_simulated(changed, 2);
  EXPECT_GT(number("SELECT sum(seconds) FROM ledger WHERE phase = 'communication'"), 0);
  EXPECT_NEAR(number("SELECT sum(seconds) FROM ledger WHERE rank = 1"),
              number("SELECT wall_s FROM ranks WHERE rank = 1"), 1e-6);
}

// 100 ms more in the load of rank 1: the others wait for rank 1 so much longer, in every step.
TEST_F(RecordedRun, ADelayIsBlamedOnWhoCausedIt) {
  run_simulated(config(), 3);
  const std::string waits =
      "SELECT coalesce(sum(seconds), 0) FROM waits WHERE run = {} AND rank = {} AND for_rank = {}";
  std::map<std::pair<int, int>, double> before;
  for (const int rank : {0, 1, 2})
    for (const int peer : {0, 1, 2})
      before[{rank, peer}] = number(fmt::format(fmt::runtime(waits), 1, rank, peer));
  run_simulated(config(), 3, {{1, 0.1}});
  const auto grown = [&](int rank, int peer) {
    return number(fmt::format(fmt::runtime(waits), 2, rank, peer)) - before[{rank, peer}];
  };
  EXPECT_NEAR(grown(0, 1), 6 * 0.1, 0.06);
  EXPECT_NEAR(grown(2, 1), 6 * 0.1, 0.06);
  EXPECT_NEAR(grown(1, 0), 0, 0.02);
  EXPECT_NEAR(grown(1, 2), 0, 0.02);
  EXPECT_NEAR(number("SELECT sum(seconds) FROM ledger WHERE run = 2 AND rank = 1 AND phase = "
                     "'load'"),
              6 * 0.1, 1e-6);
  // A step's gradients are awaited in the next one, or at the end of the epoch.
  EXPECT_EQ(number("SELECT count(*) FROM steps WHERE run = 2 AND rank = 0 AND wait_rank = 1"), 4);
  EXPECT_GT(number("SELECT min(wait_operation) FROM steps WHERE run = 2 AND rank = 0"), 0);
}

// Ring all-reduce: a rank sends 2 (N - 1) / N of the gradients in a step, however many ranks.
TEST_F(RecordedRun, TrafficOfARing) {
  TrainConfig changed = config();
  changed.algorithm = "ring";
  changed.bucket_mib = 4;  // no all-reduces to time them
  run_simulated(changed, 3);
  const double gradients = 4 * number("SELECT parameters FROM runs");
  for (const int rank : {0, 1, 2}) {
    const double sent = number(fmt::format(
        "SELECT sum(sent) FROM (SELECT max(sent_bytes) AS sent FROM traffic WHERE rank = "
        "{} GROUP BY peer)",
        rank));
    // Six steps, the weights of the beginning, and little besides.
    EXPECT_GT(sent, 6 * gradients * 4 / 3);
    EXPECT_LT(sent, 18 * gradients * 4 / 3);
  }
}

TEST_F(RecordedRun, SimulatedRunsAreRecordedTheSameTwice) {
  run_simulated(config(), 3, {{2, 0.01}});
  run_simulated(config(), 3, {{2, 0.01}});
  Store store(path_, Access::read);
  json first = store.rows("steps", 1), second = store.rows("steps", 2);
  ASSERT_EQ(first.size(), 18u);
  for (json* rows : {&first, &second})
    for (json& row : *rows) row.erase("run");
  EXPECT_EQ(first, second);
}

TEST_F(RecordedRun, WorkersWithoutTheStoreSendTheirRecords) {
  run_real(config(), 3, 1);
  expect_sums(3);
  EXPECT_GT(number("SELECT count(*) FROM layer_times WHERE rank = 2"), 0);
}

TEST_F(RecordedRun, AResumedRunIsOneRun) {
  TrainConfig first = config();
  first.epochs = 1;
  first.checkpoint_every = 1;
  run_real(first, 2);
  first.epochs = 2;
  resume(first, 2);
  Store store(path_, Access::read);
  ASSERT_EQ(store.list().size(), 1u);
  const RunRow run = store.find("latest");
  EXPECT_EQ(run.sessions, 2);
  EXPECT_EQ(run.steps, 6);
  EXPECT_EQ(store.rows("epochs", run.id).size(), 2u);
  EXPECT_EQ(number("SELECT count(*) FROM steps"), 12);
  // Times go on.
  EXPECT_EQ(
      number("SELECT count(*) FROM steps a JOIN steps b ON a.rank = b.rank AND b.step = a.step "
             "+ 1 WHERE b.begin_ns < a.begin_ns"),
      0);
}

// Each at its own pace: steps are counted by worker, and nobody waits for the others at the end.
TEST_F(RecordedRun, WorkersWithServers) {
  TrainConfig changed = config();
  changed.sync = "ps";
  changed.policy = "async";
  changed.workers = 2;
  changed.servers = 1;
  run_real(changed, 3);
  Store store(path_, Access::read);
  const RunRow run = store.find("latest");
  EXPECT_EQ(run.state, "finished");
  EXPECT_EQ(run.servers, 1);
  EXPECT_EQ(store.rows("epochs", run.id).size(), 2u);
  EXPECT_EQ(number("SELECT count(*) FROM steps"), 12);  // two parts of three steps, twice
  EXPECT_EQ(number("SELECT sum(samples) FROM steps"), 140);
  EXPECT_GT(number("SELECT sum(count) FROM staleness"), 0);
  EXPECT_GT(number("SELECT max(sent_bytes) FROM traffic WHERE peer = 2"), 0);
  EXPECT_NEAR(number("SELECT sum(seconds) FROM ledger WHERE rank = 0"),
              answer_.at("wall_s").get<double>(), 1e-3 * answer_.at("wall_s").get<double>());
}

TEST_F(RecordedRun, AFailedRunSaysWhy) {
  TrainConfig changed = config();
  changed.lr = 1e6;
  changed.schedule = "constant";
  changed.epochs = 20;
  EXPECT_ANY_THROW(run_real(changed, 1));
  Store store(path_, Access::read);
  const RunRow run = store.find("latest");
  EXPECT_EQ(run.state, "failed");
  EXPECT_THAT(run.error, ::testing::HasSubstr("not a finite number"));
  EXPECT_GT(number("SELECT count(*) FROM steps"), 0);
}

TEST_F(RecordedRun, NoneMeansNone) {
  TrainConfig changed = config();
  changed.store = "none";
  run_real(changed, 2);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(answer_.at("run"), std::filesystem::path(changed.out).filename().string());
}

}  // namespace
}  // namespace convoy
