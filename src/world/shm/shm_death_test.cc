// Ranks that are killed, stopped, or end without a word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <vector>

#include "world/host_memory.h"
#include "world/shm/shm_test_support.h"

namespace convoy::shm {
namespace {

using testing::HasSubstr;

// Steps of ranks, which their parent sees.
class Steps {
 public:
  Steps() {
    void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    counts_ = static_cast<std::atomic<int>*>(memory);
  }
  ~Steps() { munmap(counts_, 4096); }
  std::atomic<int>& operator[](int rank) { return counts_[rank]; }
  void wait_for(int rank, int count) {
    while (counts_[rank] < count) std::this_thread::yield();
  }

 private:
  std::atomic<int>* counts_;
};

// Everybody sends to everybody, for ever.
void endless_traffic(Transport& transport, Steps& steps, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> data(3 << 20), arrived(3 << 20);
  for (;;) {
    const std::size_t bytes = random() % 2 ? random() % 100 : random() % data.size();
    if (random() % 4 == 0) transport.host_memory()->barrier(kLong_s);
    std::vector<Ticket> tickets;
    for (int peer = 0; peer < transport.size(); ++peer) {
      tickets.push_back(transport.send(peer, 0, std::span(data).first(bytes)));
      tickets.push_back(transport.recv(peer, 0, arrived));
    }
    for (const Ticket ticket : tickets) transport.wait(ticket, kLong_s);
    ++steps[transport.rank()];
  }
}

void kill_rounds(int rounds, unsigned seed) {
  constexpr int kRanks = 3;
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    const int victim = static_cast<int>(random() % kRanks);
    const unsigned traffic = random();
    Steps steps;
    Segment segment = Segment::create(small_segment(kRanks));
    Processes ranks(segment, [&](World world) {
      try {
        endless_traffic(world.transport, steps, traffic);  // the same sizes on all ranks
      } catch (const PeerLost& lost) {
        // A rank that has given up is lost, too, to one who sees that first.
        EXPECT_TRUE(lost.rank() == victim || std::string(lost.what()).ends_with("it gave up"))
            << lost.what();
        return;
      }
    });
    steps.wait_for(victim, 1 + static_cast<int>(random() % 20));
    for (unsigned spin = random() % 20000; spin != 0; --spin) asm volatile("pause");
    ranks.signal(victim, SIGKILL);
    for (int rank = 0; rank < kRanks; ++rank) {
      const int status = ranks.wait(rank);
      if (rank == victim) {
        EXPECT_TRUE(WIFSIGNALED(status));
      } else {
        EXPECT_EQ(status, 0) << "rank " << rank << " in round " << round;
      }
    }
  }
}

TEST(ShmDeathTest, KilledRankIsSeenByAll) { kill_rounds(4, 1); }
TEST(ShmDeathTest, SlowKilledRankIsSeenByAll) { kill_rounds(50, 2); }

TEST(ShmDeathTest, SleepersAreWokenByADeath) {
  Steps steps;
  Segment segment = Segment::create(small_segment(4));
  Processes ranks(segment, [&](World world) {
    Transport& transport = world.transport;
    steps[transport.rank()] = 1;
    if (transport.rank() == 3) transport.wait(transport.recv(0, 1, {}), kForever);
    try {
      if (transport.rank() == 0) transport.wait(transport.recv(3, 0, {}), kLong_s);
      if (transport.rank() == 1) transport.wait(transport.recv(kAnyRank, 0, {}), kLong_s);
      if (transport.rank() == 2) transport.host_memory()->barrier(kLong_s);
      ADD_FAILURE() << "no loss seen";
    } catch (const PeerLost& lost) {
      EXPECT_EQ(lost.rank(), 3) << lost.what();
      EXPECT_THAT(lost.what(), HasSubstr("ended suddenly"));
    }
    // Nobody leaves before all have seen it.
    for (const int rank : {1, 2}) {
      if (transport.rank() == 0) transport.wait(transport.recv(rank, 2, {}), kLong_s);
      if (transport.rank() == rank) transport.wait(transport.send(0, 2, {}), kLong_s);
    }
    for (const int rank : {1, 2}) {
      if (transport.rank() == 0) transport.wait(transport.send(rank, 3, {}), kLong_s);
      if (transport.rank() == rank) transport.wait(transport.recv(0, 3, {}), kLong_s);
    }
    transport.close(kLong_s);
  });
  for (int rank = 0; rank < 4; ++rank) steps.wait_for(rank, 1);
  ranks.signal(3, SIGKILL);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << rank;
  EXPECT_TRUE(WIFSIGNALED(ranks.wait(3)));
}

TEST(ShmDeathTest, WhatADeadRankSentCanStillBeReceived) {
  Segment segment = Segment::create(small_segment(2));
  Processes ranks(segment, [&](World world) {
    Transport& transport = world.transport;
    const auto small = patterned(1, 1000), large = patterned(2, 5 << 20);
    if (transport.rank() == 0) {
      transport.wait(transport.send(1, 1, small), kLong_s);
      transport.send(1, 1, large);  // does not fit
      kill(getpid(), SIGKILL);
    }
    std::vector<std::byte> in(5 << 20);
    EXPECT_THROW(transport.wait(transport.recv(0, 2, in), kLong_s), PeerLost);
    EXPECT_EQ(transport.wait(transport.recv(0, 1, in), kLong_s).bytes, 1000u);
    EXPECT_TRUE(std::equal(small.begin(), small.end(), in.begin()));
    EXPECT_THROW(transport.wait(transport.recv(0, 1, in), kLong_s), PeerLost);
    EXPECT_THROW(transport.wait(transport.send(0, 1, small), kLong_s), PeerLost);
    transport.close(kLong_s);
  });
  EXPECT_TRUE(WIFSIGNALED(ranks.wait(0)));
  EXPECT_EQ(ranks.wait(1), 0);
}

TEST(ShmDeathTest, StoppedRankIsNamedWithItsPositionWhenTheDeadlineComes) {
  Steps steps;
  Segment segment = Segment::create(small_segment(2));
  Processes ranks(segment, [&](World world) {
    Transport& transport = world.transport;
    if (transport.rank() == 1) {
      Position position{.sequence = 812, .bytes = 64};
      position.set_place("all_reduce");
      transport.publish(position);
      steps[1] = 1;
      transport.wait(transport.recv(0, 0, {}), kForever);
      transport.close(kLong_s);
      return;
    }
    while (steps[0] == 0) std::this_thread::yield();
    for (const bool in_barrier : {false, true}) {
      try {
        if (in_barrier) transport.host_memory()->barrier(0.05);
        transport.wait(transport.recv(1, 3, {}), 0.05);
        ADD_FAILURE() << "a stopped rank has answered";
      } catch (const DeadlineExceeded& late) {
        EXPECT_THAT(late.what(), HasSubstr("rank 1"));
        EXPECT_THAT(late.what(), HasSubstr("in all_reduce #812, 64 bytes"));
      }
    }
    steps[0] = 2;
    transport.wait(transport.send(1, 0, {}), kLong_s);
    transport.close(kLong_s);
  });
  steps.wait_for(1, 1);
  ranks.signal(1, SIGSTOP);
  steps[0] = 1;
  steps.wait_for(0, 2);
  ranks.signal(1, SIGCONT);
  EXPECT_TRUE(ranks.wait_all());
}

TEST(ShmDeathTest, NothingIsLeftBehind) {
  const auto count = [](const char* folder) {
    const std::filesystem::directory_iterator all(folder);
    return std::distance(begin(all), end(all));
  };
  const auto all_threads = [] {
    run_threads(small_segment(3),
                [](World world) { world.transport.host_memory()->barrier(kLong_s); });
  };
  all_threads();  // a sanitizer starts a thread of its own with the first
  const auto descriptors = count("/proc/self/fd"), threads = count("/proc/self/task");
  kill_rounds(2, 5);
  all_threads();
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm"))
    EXPECT_THAT(file.path().string(), testing::Not(HasSubstr("convoy")));
  EXPECT_EQ(count("/proc/self/fd"), descriptors);
  EXPECT_EQ(count("/proc/self/task"), threads);
}

}  // namespace
}  // namespace convoy::shm
