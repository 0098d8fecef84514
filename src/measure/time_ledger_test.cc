#include "measure/time_ledger.h"

#include <gtest/gtest.h>

#include <map>

namespace convoy {
namespace {

// A clock that is set by hand.
class HandClock final : public Runtime {
 public:
  double now_s() const override { return time_s; }
  void sleep_s(double seconds) override { time_s += seconds; }
  void compute_s(double seconds) override { time_s += seconds; }
  std::unique_ptr<Task> spawn(std::string, std::function<void()>) override { return nullptr; }
  std::unique_ptr<Event> make_event() override { return nullptr; }
  double time_s = 100;
};

std::map<std::pair<int, int>, double> by_epoch_and_phase(const Records& records) {
  std::map<std::pair<int, int>, double> sums;
  for (const LedgerRecord& record : records.ledger)
    sums[{record.epoch, record.phase}] += record.seconds;
  return sums;
}

TEST(TimeLedger, EverySecondIsInOnePhase) {
  HandClock clock;
  TimeLedger ledger(clock, 3);
  clock.time_s += 1;
  ledger.charge(Phase::load);
  ledger.start_epoch(1);
  clock.time_s += 2;
  ledger.charge(Phase::forward, 1);
  clock.time_s += 4;
  ledger.charge(Phase::forward, 2);
  clock.time_s += 8;
  ledger.charge(Phase::backward, 2);
  EXPECT_DOUBLE_EQ(ledger.wall_s(), 15);
  double sum_s = 0;
  for (std::size_t i = 0; i < kPhases; ++i) sum_s += ledger.seconds(Phase(i));
  EXPECT_DOUBLE_EQ(sum_s, 15);
  Records records;
  ledger.take(0, 1, records);
  EXPECT_EQ(by_epoch_and_phase(records),
            (std::map<std::pair<int, int>, double>{{{0, int(Phase::load)}, 1},
                                                   {{1, int(Phase::forward)}, 6},
                                                   {{1, int(Phase::backward)}, 8}}));
  ASSERT_EQ(records.layers.size(), 2u);
  EXPECT_DOUBLE_EQ(records.layers[0].forward_s, 2);
  EXPECT_DOUBLE_EQ(records.layers[1].forward_s, 4);
  EXPECT_DOUBLE_EQ(records.layers[1].backward_s, 8);
  Records nothing;
  ledger.take(0, 1, nothing);
  EXPECT_EQ(nothing.count(), 0u);
}

TEST(TimeLedger, WhatIsCarvedOutIsNotCountedTwice) {
  HandClock clock;
  TimeLedger ledger(clock, 2);
  clock.time_s += 10;
  ledger.carve(Phase::communication, 3);
  ledger.charge(Phase::forward, 1);
  clock.time_s += 1;
  ledger.charge(Phase::forward, 1);
  EXPECT_DOUBLE_EQ(ledger.seconds(Phase::forward), 8);
  EXPECT_DOUBLE_EQ(ledger.seconds(Phase::communication), 3);
  EXPECT_DOUBLE_EQ(ledger.wall_s(), 11);
}

TEST(TimeLedger, WhatIsLearntLaterGoesToItsEpoch) {
  HandClock clock;
  TimeLedger ledger(clock);
  ledger.start_epoch(1);
  clock.time_s += 5;
  ledger.charge(Phase::communication);
  Records first;
  ledger.take(0, 0, first);
  ledger.start_epoch(2);
  clock.time_s += 1;
  ledger.charge(Phase::communication);
  ledger.move(1, Phase::communication, Phase::wait, 2);
  clock.time_s += 1;
  ledger.charge(Phase::communication);
  Records second;
  ledger.take(0, 0, second);
  first.append(std::move(second));
  EXPECT_EQ(by_epoch_and_phase(first),
            (std::map<std::pair<int, int>, double>{{{1, int(Phase::communication)}, 3},
                                                   {{1, int(Phase::wait)}, 2},
                                                   {{2, int(Phase::communication)}, 2}}));
  EXPECT_DOUBLE_EQ(ledger.seconds(Phase::wait), 2);
}

}  // namespace
}  // namespace convoy
