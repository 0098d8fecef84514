#include "world/sim/sim.h"

#include <gtest/gtest.h>

#include <numeric>

#include "world/host_memory.h"
#include "world/sim/radix_heap.h"

namespace convoy {
namespace {

constexpr double kWait_s = 1000;

const Cluster kFour{.ranks = 4, .network = {.latency_s = 1e-3, .bytes_per_s = 1e6}};

void ring(World world, int steps) {
  Transport& transport = world.transport;
  const int size = transport.size();
  std::vector<std::byte> out(1000), in(1000);
  for (int step = 0; step < steps; ++step) {
    const Ticket recv = transport.recv((transport.rank() + size - 1) % size, 1, in);
    const Ticket send = transport.send((transport.rank() + 1) % size, 1, out);
    transport.wait(recv, kWait_s);
    transport.wait(send, kWait_s);
  }
  transport.close(kWait_s);
}

TEST(RadixHeap, TakesEqualTimesInTheOrderTheyCame) {
  RadixHeap heap(0);
  std::uint64_t random = 12345;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> expected;
  std::uint64_t now = 0;
  RadixHeap::Entry entry{};
  std::uint64_t pushed = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
  for (int round = 0; round < 2000; ++round) {
    for (int push = 0; push < 5; ++push) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const std::uint64_t time = now + (random >> 60) * (random >> 33 & 0xff);
      heap.push({time, pushed});
      expected.emplace_back(time, pushed++);
    }
    for (int pop = 0; pop < 3; ++pop) {
      ASSERT_TRUE(heap.pop(entry));
      now = entry.time;
      taken.emplace_back(entry.time, entry.key);
    }
  }
  while (heap.pop(entry)) taken.emplace_back(entry.time, entry.key);
  ASSERT_EQ(taken.size(), expected.size());
  std::sort(expected.begin(), expected.end());
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sorted = taken;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, expected);
  for (std::size_t place = 1; place < taken.size(); ++place)
    ASSERT_LT(taken[place - 1], taken[place]) << place;
}

TEST(Sim, AMessageTakesLatencyAndItsBytes) {
  double received_s = 0;
  double sent_s = 0;
  run_sim(kFour, {}, [&](World world) {
    std::vector<std::byte> bytes(5000);
    Transport& transport = world.transport;
    if (transport.rank() == 0) {
      transport.wait(transport.send(1, 0, bytes), kWait_s);
      sent_s = world.runtime.now_s();
    } else if (transport.rank() == 1) {
      transport.wait(transport.recv(0, 0, bytes), kWait_s);
      received_s = world.runtime.now_s();
    }
    transport.close(kWait_s);
  });
  EXPECT_DOUBLE_EQ(sent_s, 0.005);
  EXPECT_DOUBLE_EQ(received_s, 0.006);
}

TEST(Sim, PortsOfSenderAndReceiverAreShared) {
  std::vector<double> ends(4);
  const auto end_of = [&](const RankBody& body) {
    run_sim(kFour, {}, [&](World world) {
      body(world);
      ends[world.transport.rank()] = world.runtime.now_s();
      world.transport.close(kWait_s);
    });
    return *std::max_element(ends.begin(), ends.end());
  };
  std::vector<std::byte> bytes(5000);
  const double incast_s = end_of([&](World world) {
    Transport& transport = world.transport;
    if (transport.rank() != 0)
      transport.wait(transport.send(0, 0, bytes), kWait_s);
    else
      for (int peer = 1; peer < 4; ++peer) transport.wait(transport.recv(peer, 0, bytes), kWait_s);
  });
  EXPECT_NEAR(incast_s, 0.016, 1e-9);
  const double outcast_s = end_of([&](World world) {
    Transport& transport = world.transport;
    if (transport.rank() != 0) {
      transport.wait(transport.recv(0, 0, bytes), kWait_s);
      return;
    }
    std::vector<Ticket> sends;
    for (int peer = 1; peer < 4; ++peer) sends.push_back(transport.send(peer, 0, bytes));
    for (const Ticket send : sends) transport.wait(send, kWait_s);
  });
  EXPECT_NEAR(outcast_s, 0.016, 1e-9);
  const double pairs_s = end_of([&](World world) {
    Transport& transport = world.transport;
    if (transport.rank() % 2 == 0)
      transport.wait(transport.send(transport.rank() + 1, 0, bytes), kWait_s);
    else
      transport.wait(transport.recv(transport.rank() - 1, 0, bytes), kWait_s);
  });
  EXPECT_NEAR(pairs_s, 0.006, 1e-9);
}

TEST(Sim, HostsWiresPortsAndSpeedsDiffer) {
  Cluster cluster = kFour;
  cluster.host_of = {0, 0, 1, 2};
  cluster.local = {.latency_s = 1e-6, .bytes_per_s = 1e9};
  cluster.ports = {{.host = 1, .bytes_per_s = 5e5}};
  cluster.wires = {{.host = 2, .peer = 0, .link = {.latency_s = 0.1, .bytes_per_s = 1e6}}};
  cluster.speed = {1, 1, 1, 4};
  cluster.memory_bytes_per_s = 1e6;
  std::vector<double> ends(4);
  run_sim(cluster, {}, [&](World world) {
    std::vector<std::byte> bytes(1000);
    Transport& transport = world.transport;
    if (transport.rank() == 0) {
      std::vector<Ticket> sends;
      for (int peer = 1; peer < 4; ++peer) sends.push_back(transport.send(peer, 0, bytes));
      for (const Ticket send : sends) transport.wait(send, kWait_s);
    } else {
      transport.wait(transport.recv(0, 0, bytes), kWait_s);
    }
    if (transport.rank() == 1) transport.host_memory()->moved(3000);
    ends[transport.rank()] = world.runtime.now_s();
    const double before_s = world.runtime.now_s();
    world.runtime.compute_s(2);
    EXPECT_NEAR(world.runtime.now_s() - before_s, transport.rank() == 3 ? 0.5 : 2, 1e-9);
    transport.close(kWait_s);
  });
  EXPECT_NEAR(ends[1], 2e-6 + 3e-3, 1e-9);
  EXPECT_NEAR(ends[2], 1e-3 + 2e-3, 1e-9);        // its port is slower than the sender's
  EXPECT_NEAR(ends[3], 1e-3 + 0.1 + 1e-3, 1e-9);  // behind the message to rank 2
}

SimResult busy_run(std::uint64_t seed, bool faults) {
  SimOptions options{.seed = seed, .rethrow = false, .keep_trace = true};
  if (faults)
    options.faults = {{.kind = Fault::Kind::slow, .at_s = 0.004, .until_s = 0.02, .rank = 1},
                      {.kind = Fault::Kind::kill, .at_s = 0.05, .rank = 2}};
  return run_sim(kFour, options, [](World world) {
    const auto task = world.runtime.spawn("other", [&] { world.runtime.sleep_s(0.003); });
    ring(world, 40);
    task->join();
  });
}

TEST(Sim, SameSeedSameTrace) {
  for (const bool faults : {false, true})
    for (const std::uint64_t seed : {0, 1, 2}) {
      const SimResult one = busy_run(seed, faults);
      const SimResult two = busy_run(seed, faults);
      EXPECT_EQ(one.trace, two.trace);
      EXPECT_EQ(one.trace_hash, two.trace_hash);
      EXPECT_EQ(one.seconds, two.seconds);
      EXPECT_GT(one.messages, 40u);
    }
  EXPECT_NE(busy_run(1, false).trace_hash, busy_run(2, false).trace_hash);
}

TEST(Sim, ADeadlockSaysWhoWaitsForWhat) {
  try {
    run_sim(kFour, {}, [](World world) {
      std::vector<std::byte> bytes(1);
      if (world.transport.rank() == 3) world.runtime.make_event()->wait(kForever);
      const int from = world.transport.rank() + 1;
      world.transport.wait(world.transport.recv(from, 7, bytes), kForever);
    });
    FAIL() << "no deadlock found";
  } catch (const TransportError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("rank 1 (main) waits for a message from rank 2 under "
                        "tag 7"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("rank 3 (main) waits for an event"),
              std::string::npos);
  }
}

// How every rank of a ring ends that a fault meets: the rank that it found lost, or -1.
std::vector<int> losses(const std::vector<Fault>& faults, const SimOptions& base = {}) {
  std::vector<int> found(4, -1);
  SimOptions options = base;
  options.faults = faults;
  options.rethrow = false;
  const SimResult result = run_sim(kFour, options, [](World world) { ring(world, 100'000); });
  for (int rank = 0; rank < 4; ++rank) {
    if (!result.ranks[rank].failure) continue;
    try {
      std::rethrow_exception(result.ranks[rank].failure);
    } catch (const PeerLost& lost) {
      found[rank] = lost.rank();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  return found;
}

TEST(Sim, FaultsAreFoundByTheNeighbours) {
  const auto killed = losses({{.kind = Fault::Kind::kill, .at_s = 0.1, .rank = 2}});
  EXPECT_EQ(killed[2], -1);
  EXPECT_EQ(killed[3], 2);
  const auto stopped = losses({{.kind = Fault::Kind::pause, .at_s = 0.1, .rank = 2}});
  EXPECT_EQ(stopped[3], 2);
  const auto cut = losses({{.kind = Fault::Kind::cut, .at_s = 0.1, .rank = 1, .peer = 2}});
  EXPECT_EQ(cut[2], 1);
}

TEST(Sim, ShortTroublesOnlyCostTime) {
  const double plain_s = run_sim(kFour, {}, [](World world) { ring(world, 50); }).seconds;
  for (const Fault::Kind kind : {Fault::Kind::pause, Fault::Kind::cut, Fault::Kind::slow})
    for (const std::uint64_t seed : {0, 5}) {
      const Fault fault{.kind = kind, .at_s = 0.02, .until_s = 1.02, .rank = 1};
      const double slow_s = run_sim(kFour, {.seed = seed, .faults = {fault}}, [](World world) {
                              ring(world, 50);
                            }).seconds;
      EXPECT_GT(slow_s, plain_s + 0.3);
      EXPECT_LT(slow_s, plain_s + 1.1);
    }
}

TEST(Sim, KeepsOrderOverALinkThatGetsFaster) {
  const Fault slow{.kind = Fault::Kind::slow, .at_s = 0, .until_s = 0.01, .rank = 0, .factor = 100};
  run_sim(kFour, {.seed = 3, .faults = {slow}}, [](World world) {
    constexpr int kMessages = 200;
    Transport& transport = world.transport;
    std::vector<int> numbers(kMessages);
    std::iota(numbers.begin(), numbers.end(), 0);
    for (int& number : numbers) {
      if (transport.rank() > 1) break;
      const std::span<int> one(&number, 1);
      if (transport.rank() == 0) {
        transport.wait(transport.send(1, 0, std::as_bytes(one)), kWait_s);
      } else {
        const int expected = std::exchange(number, -1);
        transport.wait(transport.recv(0, 0, std::as_writable_bytes(one)), kWait_s);
        EXPECT_EQ(number, expected);
      }
    }
    transport.close(kWait_s);
  });
}

// Fibers change places while one of them handles an exception: each must find its own again.
TEST(Sim, EveryTaskHasItsOwnExceptions) {
  run_sim(kFour, {}, [](World world) {
    for (int round = 0; round < 20; ++round) try {
        throw world.transport.rank() * 100 + round;
      } catch (const int& thrown) {
        world.runtime.sleep_s(0.001 * (world.transport.rank() + 1));
        try {
          throw std::runtime_error("inner");
        } catch (const std::exception&) {
          world.runtime.sleep_s(0.002);
        }
        EXPECT_EQ(thrown, world.transport.rank() * 100 + round);
        EXPECT_EQ(std::uncaught_exceptions(), 0);
      }
    world.transport.close(kWait_s);
  });
}

TEST(Sim, ManyTasksComeAndGo) {
  int ran = 0;
  run_sim(kFour, {}, [&](World world) {
    for (int round = 0; round < 50; ++round) {
      std::vector<std::unique_ptr<Task>> tasks;
      for (int task = 0; task < 20; ++task)
        tasks.push_back(world.runtime.spawn("task", [&] {
          world.runtime.sleep_s(0.001);
          ++ran;
        }));
    }
    const auto failing = world.runtime.spawn("fails", [] { throw DataError("broken"); });
    EXPECT_THROW(failing->join(), DataError);
    world.transport.close(kWait_s);
  });
  EXPECT_EQ(ran, 4 * 50 * 20);
}

}  // namespace
}  // namespace convoy
