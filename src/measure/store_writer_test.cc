#include "measure/store_writer.h"

#include <gmock/gmock.h>

#include "measure/test_store.h"

namespace convoy {
namespace {

using nlohmann::json;

Records steps(std::int64_t from, std::int64_t to, int rank = 0) {
  Records records;
  for (std::int64_t step = from; step <= to; ++step)
    records.steps.push_back({.step = step, .begin_ns = step * 1000, .rank = rank, .epoch = 1});
  return records;
}

TEST_F(StoreTest, WritesEveryKindOfRecord) {
  Records records;
  records.steps.push_back({.step = 7,
                           .begin_ns = 1,
                           .load_ns = 2,
                           .forward_ns = 3,
                           .backward_ns = 4,
                           .communication_ns = 5,
                           .wait_ns = 6,
                           .update_ns = 7,
                           .other_ns = 8,
                           .wait_operation = 9,
                           .wait_rank = 1,
                           .wait_node = -1,
                           .rank = 0,
                           .epoch = 2,
                           .samples = 64,
                           .correct = 60,
                           .loss = 0.5,
                           .learning_rate = 0.1});
  records.ledger.push_back({.epoch = 2, .phase = 1, .seconds = 1.5});
  records.waits.push_back({.epoch = 2, .for_rank = 1, .node = 3, .count = 2, .seconds = 0.25});
  records.layers.push_back(
      {.epoch = 2, .node = 3, .steps = 1, .forward_s = 0.5, .backward_s = 0.75});
  records.spans.push_back({.step = 7, .begin_ns = 1, .end_ns = 2, .phase = 1, .node = 3});
  records.resources.push_back({.rank = 0, .at_s = 1, .cpu_s = 0.9});
  records.traffic.push_back({.peer = 1, .at_s = 1, .sent_bytes = 10});
  records.staleness.push_back({.epoch = 2, .behind = 3, .count = 4});
  records.latencies.push_back({.epoch = 2,
                               .operation = TimedOperation::pull,
                               .count = 1,
                               .sum_s = 0.2,
                               .least_s = 0.2,
                               .most_s = 0.2});
  const auto begun = record(some_run("run"), records);
  Store store(path_, Access::read);
  const json step = store.rows("steps", begun.run).at(0);
  const json expected = {{"run", begun.run},     {"rank", 0},           {"step", 7},
                         {"epoch", 2},           {"begin_ns", 1},       {"load_ns", 2},
                         {"forward_ns", 3},      {"backward_ns", 4},    {"communication_ns", 5},
                         {"wait_ns", 6},         {"update_ns", 7},      {"other_ns", 8},
                         {"wait_rank", 1},       {"wait_node", -1},     {"wait_operation", 9},
                         {"samples", 64},        {"correct", 60},       {"loss", 0.5},
                         {"learning_rate", 0.1}, {"staleness", nullptr}};
  EXPECT_EQ(step, expected);
  EXPECT_EQ(store.rows("ledger", begun.run).at(0).at("phase"), "forward");
  EXPECT_EQ(store.rows("waits", begun.run).at(0).at("seconds"), 0.25);
  EXPECT_EQ(store.rows("layer_times", begun.run).at(0).at("backward_s"), 0.75);
  EXPECT_EQ(store.rows("spans", begun.run).at(0).at("name"), "forward");
  EXPECT_TRUE(store.rows("resources", begun.run).at(0).at("throttled_s").is_null());
  EXPECT_EQ(store.rows("traffic", begun.run).at(0).at("sent_bytes"), 10);
  EXPECT_EQ(store.rows("staleness", begun.run).at(0).at("count"), 4);
  EXPECT_EQ(store.rows("latencies", begun.run).at(0).at("operation"), "pull");
}

TEST_F(StoreTest, SumsAddUpAndStepsAreReplaced) {
  StoreWriter writer;
  const auto begun = writer.begin(path_, some_run("run"), nullptr);
  for (const double seconds : {1.0, 2.5}) {
    Records records = steps(1, 3);
    records.steps[0].load_ns = std::int64_t(seconds * 10);
    records.ledger.push_back({.epoch = 1, .phase = 0, .seconds = seconds});
    records.latencies.push_back({.epoch = 1,
                                 .operation = TimedOperation::push,
                                 .count = 1,
                                 .sum_s = seconds,
                                 .least_s = seconds,
                                 .most_s = seconds});
    writer.add(std::move(records));
    ASSERT_TRUE(writer.flush());
  }
  ASSERT_TRUE(writer.end());
  Store store(path_, Access::read);
  EXPECT_EQ(store.rows("steps", begun.run).size(), 3u);
  EXPECT_EQ(store.rows("steps", begun.run).at(0).at("load_ns"), 25);
  EXPECT_EQ(store.rows("ledger", begun.run).at(0).at("seconds"), 3.5);
  EXPECT_EQ(store.rows("ranks", begun.run).at(0).at("wall_s"), 3.5);
  const json latency = store.rows("latencies", begun.run).at(0);
  EXPECT_EQ(latency.at("count"), 2);
  EXPECT_EQ(latency.at("least_s"), 1.0);
  EXPECT_EQ(latency.at("most_s"), 2.5);
}

TEST_F(StoreTest, AResumedRunGoesOnAndForgetsWhatHappensAgain) {
  const auto first = record(some_run("run"), steps(1, 10));
  const StoreWriter::Position position{.step = 6, .epochs = 0};
  const auto second = record(some_run("run"), steps(7, 8), &position);
  EXPECT_EQ(second.run, first.run);
  EXPECT_EQ(count("steps"), 8);
  EXPECT_EQ(Store(path_, Access::read).find("run").sessions, 2);
  // Not the folder of any run in the store.
  EXPECT_NE(record(some_run("other"), {}, &position).run, first.run);
}

TEST_F(StoreTest, WhatCannotBeWrittenIsKept) {
  StoreWriter writer;
  writer.begin(path_, some_run("run"), nullptr);
  {
    Store other(path_, Access::write);
    const Transaction transaction(other.database());
    writer.set_patience_s(0.01);
    writer.add(steps(1, 5));
    EXPECT_FALSE(writer.flush());
  }
  EXPECT_TRUE(writer.end());
  EXPECT_EQ(count("steps"), 5);
}

TEST_F(StoreTest, OthersOfTheSameHostWriteThemselves) {
  StoreWriter leader, other;
  const auto begun = leader.begin(path_, some_run("run"), nullptr);
  EXPECT_FALSE(other.join(path_, "another boot:1:2", begun.run));
  EXPECT_FALSE(other.recording());
  EXPECT_TRUE(other.join(path_, file_identity(path_), begun.run));
  leader.add(steps(1, 5, 0));
  other.add(steps(1, 5, 1));
  EXPECT_TRUE(other.end());
  EXPECT_TRUE(leader.end());
  EXPECT_EQ(count("steps"), 10);
}

TEST(Records, SurviveTheWayToAnotherProcess) {
  Records records = steps(1, 3);
  records.waits.push_back({.rank = 1, .for_rank = 2, .seconds = 0.5});
  const std::vector<std::byte> bytes = records.pack();
  const Records back = Records::unpack(bytes);
  ASSERT_EQ(back.steps.size(), 3u);
  EXPECT_EQ(back.steps[2].step, 3);
  EXPECT_EQ(back.waits.at(0).for_rank, 2);
  for (const std::size_t length : {std::size_t{0}, std::size_t{5}, bytes.size() - 1})
    EXPECT_THROW(Records::unpack(std::span(bytes).first(length)), std::runtime_error);
}

}  // namespace
}  // namespace convoy
