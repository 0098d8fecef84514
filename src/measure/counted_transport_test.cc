#include "measure/counted_transport.h"

#include <gtest/gtest.h>

#include <array>

#include "sync/communicator.h"
#include "world/inproc/inproc.h"
#include "world/sim/sim.h"

namespace convoy {
namespace {

// Every byte that a rank sends another receives, in a ring each from its left neighbour.
TEST(CountedTransport, CountsARing) {
  constexpr int kRanks = 4;
  constexpr std::size_t kFloats = 1000;
  std::array<Records, kRanks> all;
  run_sim({.ranks = kRanks}, {}, [&](World world) {
    CountedTransport counted(world.transport);
    Communicator communicator(world.runtime, counted, {.algorithm = "ring"});
    std::vector<float> values(kFloats, 1.0f);
    communicator.all_reduce(values);
    EXPECT_EQ(values[0], kRanks);
    communicator.barrier();
    counted.take(1, all[std::size_t(counted.rank())]);
    counted.take(2, all[std::size_t(counted.rank())]);  // nothing new
    counted.close(1);
  });
  std::int64_t sent = 0, received = 0, sent_messages = 0, received_messages = 0;
  for (const Records& records : all)
    for (const TrafficRecord& one : records.traffic) {
      EXPECT_EQ(one.at_s, 1);
      sent += one.sent_bytes;
      received += one.received_bytes;
      sent_messages += one.sent_messages;
      received_messages += one.received_messages;
    }
  EXPECT_EQ(sent, received);
  EXPECT_EQ(sent_messages, received_messages);
  // 2 (N - 1) / N of the data by each rank, and little besides.
  EXPECT_GE(sent, std::int64_t(2 * (kRanks - 1) * kFloats * sizeof(float)));
  EXPECT_LT(sent, std::int64_t(2 * (kRanks - 1) * kFloats * sizeof(float)) + 4096);
}

TEST(CountedTransport, KeepsDeadlinesAndCancelling) {
  run_inproc(2, {}, [&](World world) {
    CountedTransport counted(world.transport);
    std::array<std::byte, 8> buffer;
    if (counted.rank() == 0) {
      const Ticket never = counted.recv(1, 7, buffer);
      EXPECT_THROW(counted.wait(never, 0.01), DeadlineExceeded);
      EXPECT_FALSE(counted.wait_any(std::array{never}, 0.01));
      counted.cancel(never);
      counted.wait(counted.send(1, 9, std::span(buffer).first(1)), 60);
      EXPECT_EQ(counted.wait(counted.recv(kAnyRank, 8, buffer), 60).rank, 1);
      Records records;
      counted.take(0, records);
      ASSERT_EQ(records.traffic.size(), 1u);
      EXPECT_EQ(records.traffic[0].received_bytes, 5);
      EXPECT_EQ(records.traffic[0].sent_bytes, 1);
    } else {
      counted.wait(counted.recv(0, 9, buffer), 60);
      counted.wait(counted.send(0, 8, std::span(buffer).first(5)), 60);
    }
    counted.close(10);
  });
}

}  // namespace
}  // namespace convoy
