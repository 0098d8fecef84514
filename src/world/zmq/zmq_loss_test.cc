// Ranks that are killed or stopped, and long transfers that must not be taken for a silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "world/host_memory.h"
#include "world/patience.h"
#include "world/zmq/zmq_test_support.h"

namespace convoy {
namespace {

constexpr double kWait_s = 60;

// Every rank sends 1 MiB to the next and takes as much from the one before, again and again, until
// it finds a rank lost, which it returns. Whoever has lost nobody himself hears of the loss by his
// receive from any rank.
int turn_until_lost(World world, int ready_pipe) {
  Transport& transport = world.transport;
  const int size = transport.size(), rank = transport.rank();
  std::vector<std::byte> out(1 << 20), in(1 << 20);
  const Ticket losses = transport.recv(kAnyRank, 99, {});
  for (int round = 0;; ++round) {
    if (round == 3 && write(ready_pipe, "r", 1) != 1) return -1;
    std::vector<Ticket> open = {transport.send((rank + 1) % size, 1, out),
                                transport.recv((rank + size - 1) % size, 1, in), losses};
    try {
      while (open.size() > 1) std::erase(open, transport.wait_any(open, kWait_s).value().ticket);
    } catch (const PeerLost& lost) {
      for (const Ticket ticket : open) transport.cancel(ticket);
      return lost.rank();
    }
  }
}

// Three ranks turn; one gets the signal in the midst. The others must name it, and so must the
// rendezvous.
void lose_one(int number, int victim, double heartbeat_deadline_s) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  ZmqProcesses ranks(3, [&](World world) {
    EXPECT_EQ(turn_until_lost(world, ready[1]), victim);
    // Nobody leaves, and is missed too, before the other has found the loss.
    const int other = 3 - victim - world.transport.rank();
    const Ticket send = world.transport.send(other, 2, {}),
                 recv = world.transport.recv(other, 2, {});
    world.transport.wait(send, kWait_s);
    world.transport.wait(recv, kWait_s);
    world.transport.close(kWait_s);
  });
  close(ready[1]);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> told;
  TestJob job({.size = 3, .heartbeat_deadline_s = heartbeat_deadline_s},
              [&](int rank, const std::string&) {
                const std::lock_guard lock(mutex);
                told.push_back(rank);
                changed.notify_all();
              });
  ranks.start(job);
  char one = 0;
  for (int rank = 0; rank < 3; ++rank) ASSERT_EQ(read(ready[0], &one, 1), 1);
  ranks.signal(victim, number);
  for (int rank = 0; rank < 3; ++rank)
    if (rank != victim) {
      EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
    }
  {
    std::unique_lock lock(mutex);
    const Patience patience(kWait_s);
    while (told.empty() && patience.wait(changed, lock)) {
    }
    EXPECT_THAT(told, testing::ElementsAre(victim));
  }
  close(ready[0]);
}

TEST(ZmqLoss, AKilledRankIsNamedByAll) {
  for (int round = 0; round < 3; ++round) lose_one(SIGKILL, round % 3, 5);
}

TEST(ZmqLoss, SlowAStoppedRankIsNamedByAll) {
  for (int round = 0; round < 2; ++round) lose_one(SIGSTOP, round % 3, 2);
}

TEST(ZmqLoss, FiftyKilledRanksAreNamedSlow) {
  for (int round = 0; round < 50 && !testing::Test::HasFailure(); ++round)
    lose_one(SIGKILL, round * 7 % 3, 5);
}

TEST(ZmqLoss, FiftyStoppedRanksAreNamedSlow) {
  for (int round = 0; round < 50 && !testing::Test::HasFailure(); ++round)
    lose_one(SIGSTOP, round * 7 % 3, 2);
}

// Rank 0 sends for five deadlines of the heartbeat without a pause.
TEST(ZmqLoss, SlowLongTransfersOutliveManyHeartbeats) {
  run_zmq_threads({.size = 2, .heartbeat_deadline_s = 1}, [](World world, const RankDie&) {
    Transport& transport = world.transport;
    std::vector<std::byte> bytes(64 << 20, std::byte{1});
    const double begin_s = world.runtime.now_s();
    while (bytes[0] == std::byte{1}) {  // the last message begins with 0
      if (transport.rank() == 0) {
        if (world.runtime.now_s() > begin_s + 5) bytes[0] = std::byte{0};
        transport.wait(transport.send(1, 1, bytes), kWait_s);
      } else {
        transport.wait(transport.recv(0, 1, bytes), kWait_s);
      }
    }
    transport.close(kWait_s);
  });
}

// Ranks 0 and 2 share a host. Rank 2 comes to the barrier when rank 1 has got what rank 0 sent it
// before.
TEST(ZmqHosts, MessagesToOtherHostsGoOnInABarrier) {
  run_zmq_threads({.size = 3, .hosts = 2}, [](World world, const RankDie&) {
    Transport& transport = world.transport;
    std::vector<std::byte> data(8 << 20);
    Ticket sent = 0;
    if (transport.rank() == 0) sent = transport.send(1, 1, data);
    if (transport.rank() == 1) {
      transport.wait(transport.recv(0, 1, data), kWait_s);
      transport.wait(transport.send(2, 2, {}), kWait_s);
    } else {
      if (transport.rank() == 2) transport.wait(transport.recv(1, 2, {}), kWait_s);
      transport.host_memory()->barrier(kWait_s);
    }
    if (transport.rank() == 0) transport.wait(sent, kWait_s);
    transport.close(kWait_s);
  });
}

TEST(ZmqHosts, ARankThatLosesAnotherHostEndsTheBarrierOfItsOwn) {
  run_zmq_threads({.size = 3, .hosts = 2}, [](World world, const RankDie& die) {
    Transport& transport = world.transport;
    if (transport.rank() == 1) die();
    if (transport.rank() == 2) {
      EXPECT_THROW(transport.wait(transport.recv(1, 2, {}), kWait_s), PeerLost);
      die();
    }
    try {
      transport.host_memory()->barrier(kWait_s);
      ADD_FAILURE() << "rank 2 never came";
    } catch (const PeerLost& lost) {
      EXPECT_EQ(lost.rank(), 2);
    }
    transport.close(kWait_s);
  });
}

TEST(ZmqLoss, ARankThatFailsTellsEverybodyWhy) {
  run_zmq_threads({.size = 3}, [](World world, const RankDie& die) {
    if (world.transport.rank() == 1) {
      static_cast<RendezvousTransport&>(world.transport).fail("disk full");
      die();
    }
    const Ticket blocked = world.transport.recv(1, 1, {});
    try {
      world.transport.wait(blocked, kWait_s);
      ADD_FAILURE() << "rank 1 sent nothing";
    } catch (const PeerLost& lost) {
      EXPECT_EQ(lost.rank(), 1);
      EXPECT_THAT(lost.what(), testing::HasSubstr("disk full"));
    }
    world.transport.close(kWait_s);
  });
}

// Rank 1 lives, but the launcher says that it is lost: then rank 0 has nothing to do with it any
// more, which it notices.
TEST(ZmqLoss, WhatTheLauncherAnnouncesReachesTheRanks) {
  TestJob job({.size = 2});
  const auto lose_peer = [](World world, const std::string& why) {
    const int peer = 1 - world.transport.rank();
    try {
      world.transport.wait(world.transport.recv(peer, 1, {}), kWait_s);
      ADD_FAILURE() << "nobody sent anything";
    } catch (const PeerLost& lost) {
      EXPECT_EQ(lost.rank(), peer);
      EXPECT_THAT(lost.what(), testing::HasSubstr(why));
    }
    world.transport.close(kWait_s);
  };
  std::thread accused([&] {
    run_zmq_rank(job.job(1), [&](World world, const RankDie&) { lose_peer(world, ""); });
  });
  run_zmq_rank(job.job(0), [&](World world, const RankDie&) {
    job.rendezvous().announce_lost(1, "killed by signal 9");
    lose_peer(world, "killed by signal 9");
  });
  accused.join();
}

}  // namespace
}  // namespace convoy
