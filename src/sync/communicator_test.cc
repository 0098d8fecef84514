// What a Communicator says when something is wrong.
#include "sync/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sync/grouped_digits.h"
#include "world/inproc/inproc.h"
#include "world/sim/sim.h"

namespace convoy {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What every rank's body threw; empty where it did not.
std::vector<std::string> failures(int ranks, const SimOptions& options, const RankBody& body) {
  SimOptions quiet = options;
  quiet.rethrow = false;
  const SimResult result = run_sim({.ranks = ranks}, quiet, body);
  std::vector<std::string> texts;
  for (const SimResult::Rank& rank : result.ranks) {
    texts.emplace_back();
    try {
      if (rank.failure) std::rethrow_exception(rank.failure);
    } catch (const std::exception& error) {
      texts.back() = error.what();
    }
  }
  return texts;
}

TEST(CommunicatorTest, TheDeadlineNamesWhoIsMissingAndWhereEverybodyIs) {
  const auto texts = failures(4, {}, [](World world) {
    Communicator communicator(world.runtime, world.transport,
                              {.algorithm = "ring", .timeout_s = 2});
    std::vector<float> values(1 << 20);
    communicator.all_reduce(values);
    if (world.transport.rank() == 3) world.runtime.sleep_s(60);
    communicator.all_reduce(values);
    world.transport.close(1);
  });
  EXPECT_THAT(texts[0],
              AllOf(HasSubstr("all_reduce #2 (4,194,304 bytes): rank 3 never came"),
                    HasSubstr("rank 0: in all_reduce #2"),
                    HasSubstr("rank 3: last seen in all_reduce #1"), HasSubstr(" s ago")));
}

TEST(CommunicatorTest, ALostRankIsNamedByAllOthers) {
  const SimOptions options{.faults = {{.kind = Fault::Kind::kill, .at_s = 0.01, .rank = 2}}};
  const auto texts = failures(5, options, [](World world) {
    Communicator communicator(world.runtime, world.transport, {.algorithm = "ring"});
    std::vector<float> values(1 << 20);
    while (true) communicator.all_reduce(values);
  });
  for (int rank : {0, 1, 3, 4})
    EXPECT_THAT(texts[std::size_t(rank)],
                AllOf(HasSubstr("rank 2 is lost"), HasSubstr("all_reduce #1 (4,194,304 bytes)")));
}

TEST(CommunicatorTest, DifferentSizesAreNamed) {
  for (const char* algorithm : {"ring", "tree", "halving_doubling", "reduce_broadcast", "torus"}) {
    const auto texts = failures(3, {}, [&](World world) {
      Communicator communicator(world.runtime, world.transport, {.algorithm = algorithm});
      std::vector<float> values(world.transport.rank() == 1 ? 100'000 : 200'000);
      communicator.all_reduce(values);
    });
    EXPECT_THAT(texts[2], AllOf(HasSubstr("operation #1"),
                                HasSubstr("rank 1 is in all_reduce (sum of 400,000 bytes of f32"),
                                HasSubstr("rank 2 is in all_reduce (sum of 800,000 bytes of f32")))
        << algorithm;
    EXPECT_NE(texts[0], "");
    EXPECT_NE(texts[1], "");
  }
}

TEST(CommunicatorTest, DifferentOperationsAreNamedBeforeTheDeadline) {
  const auto texts = failures(2, {}, [](World world) {
    Communicator communicator(world.runtime, world.transport,
                              {.algorithm = "ring", .timeout_s = 1000});
    std::vector<float> values(64);
    communicator.all_reduce(values);
    if (world.transport.rank() == 0)
      communicator.barrier();
    else
      communicator.broadcast(std::as_writable_bytes(std::span(values)), 1);
    world.transport.close(1);
  });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("operation #2"),
                              HasSubstr("rank 1 is in broadcast (256 bytes from rank 1)"),
                              HasSubstr("rank 0 is in barrier")));
}

TEST(CommunicatorTest, AFailureStays) {
  const auto texts = failures(2, {}, [](World world) {
    if (world.transport.rank() == 1) throw std::runtime_error("away");
    Communicator communicator(world.runtime, world.transport);
    EXPECT_THROW(communicator.barrier(), PeerLost);
    communicator.barrier();
  });
  EXPECT_THAT(texts[0], HasSubstr("rank 1 is lost"));
}

TEST(CommunicatorTest, BuffersOfAHostMustAllBeShared) {
  EXPECT_THROW(run_inproc(2, {},
                          [](World world) {
                            Communicator communicator(world.runtime, world.transport,
                                                      {.algorithm = "hierarchical"});
                            std::vector<float> values(100);
                            if (world.transport.rank() == 1) {
                              const auto shared = world.transport.host_memory()->allocate(400);
                              communicator.all_reduce(shared, Element::f32, Reduction::sum);
                            } else {
                              communicator.all_reduce(values);
                            }
                          }),
               TransportError);
}

TEST(CommunicatorTest, UnknownAlgorithm) {
  run_inproc(1, {}, [](World world) {
    try {
      Communicator communicator(world.runtime, world.transport, {.algorithm = "rign"});
      FAIL();
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("did you mean ring"));
    }
    world.transport.close(1);
  });
}

TEST(CommunicatorTest, AWakeInBetweenIsNotLost) {
  run_inproc(2, {}, [](World world) {
    Communicator communicator(world.runtime, world.transport, {.algorithm = "ring"});
    std::vector<float> values(100'000);
    world.transport.wake();
    communicator.all_reduce(values);
    EXPECT_EQ(world.transport.wait_any({}, 60), std::nullopt);  // returns at once
    communicator.barrier();
    world.transport.close(60);
  });
}

TEST(CommunicatorTest, IntentsSurvivePacking) {
  const Intent intent{.kind = Kind::reduce,
                      .element = Element::i64,
                      .reduction = Reduction::max,
                      .algorithm = 5,
                      .root = 1023,
                      .bytes = 123'456'789'012};
  const Intent again = Intent::unpack(intent.pack());
  EXPECT_EQ(again.text(), intent.text());
  EXPECT_EQ(again.pack(), intent.pack());
  Intent other = intent;
  other.bytes += 8;
  EXPECT_NE(other.pack(), intent.pack());
}

TEST(GroupedDigitsTest, Thousands) {
  EXPECT_EQ(grouped_digits(0), "0");
  EXPECT_EQ(grouped_digits(999), "999");
  EXPECT_EQ(grouped_digits(1000), "1,000");
  EXPECT_EQ(grouped_digits(4194304), "4,194,304");
}

}  // namespace
}  // namespace convoy
