#include "world/shaped/shaped.h"

#include <gtest/gtest.h>

#include "world/inproc/inproc.h"
#include "world/sim/sim.h"
#include "world/transport_contract.h"

namespace convoy {

std::vector<ContractWorld> shaped_contract_worlds() {
  const auto run = [](int size, const ContractBody& body) {
    InprocFaults faults;
    run_inproc(size, {.faults = &faults}, [&](World world) {
      ShapedTransport shaped(world.transport, world.runtime, {.link = [](int) {
                               return ShapedLink{
                                   .latency_s = 1e-4, .bytes_per_s = 2e9, .jitter_s = 1e-4};
                             }});
      body({world.runtime, shaped}, [&] {
        faults.kill(world.transport.rank());
        world.transport.wait_any({}, kForever);
      });
    });
  };
  return {{.name = "shaped_inproc", .run = run}};
}

namespace {

// On a simulated clock, over links that cost nothing themselves, shaped times are exact.
TEST(Shaped, AddsLatencyAndRateAtBothPorts) {
  const Cluster fast{.ranks = 3, .network = {.latency_s = 1e-9, .bytes_per_s = 1e15}};
  std::vector<double> ends(3);
  std::vector<double> sent(3);
  run_sim(fast, {}, [&](World world) {
    ShapedTransport transport(world.transport, world.runtime, {.link = [](int) {
                                return ShapedLink{.latency_s = 0.5, .bytes_per_s = 1000};
                              }});
    std::vector<std::byte> bytes(1000);
    if (transport.rank() == 0) {
      for (int peer = 1; peer < 3; ++peer) transport.wait(transport.recv(peer, 0, bytes), 100);
    } else {
      transport.wait(transport.send(0, 0, bytes), 100);
      sent[transport.rank()] = world.runtime.now_s();
    }
    ends[transport.rank()] = world.runtime.now_s();
    transport.close(100);
  });
  EXPECT_NEAR(sent[1], 1, 1e-6);
  EXPECT_NEAR(sent[2], 1, 1e-6);
  EXPECT_NEAR(ends[0], 2.5, 1e-6);  // both messages through the port of rank 0
}

TEST(Shaped, JitterStaysInItsBoundsAndKeepsOrder) {
  const Cluster fast{.ranks = 2, .network = {.latency_s = 1e-9, .bytes_per_s = 1e15}};
  run_sim(fast, {}, [&](World world) {
    ShapedTransport transport(world.transport, world.runtime, {.link = [](int) {
                                return ShapedLink{.latency_s = 0.1, .jitter_s = 0.05};
                              }});
    double least_s = kForever;
    double most_s = 0;
    for (int round = 0; round < 200; ++round) {
      double begin_s = world.runtime.now_s();
      const std::span<double> payload(&begin_s, 1);
      if (transport.rank() == 0) {
        transport.wait(transport.send(1, 0, std::as_bytes(payload)), 100);
        transport.wait(transport.recv(1, 0, {}), 100);
      } else {
        transport.wait(transport.recv(0, 0, std::as_writable_bytes(payload)), 100);
        const double took_s = world.runtime.now_s() - begin_s;
        least_s = std::min(least_s, took_s);
        most_s = std::max(most_s, took_s);
        transport.wait(transport.send(0, 0, {}), 100);
      }
    }
    if (transport.rank() == 1) {
      EXPECT_GE(least_s, 0.1 - 1e-6);
      EXPECT_LT(most_s, 0.15 + 1e-6);
      EXPECT_GT(most_s - least_s, 0.03);
    }
    transport.close(100);
  });
}

}  // namespace
}  // namespace convoy
