// The commands that measure collectives and links, as a user calls them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program.h"

namespace convoy {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(BenchAllreduce, EveryTransportAndElement) {
  for (const char* transport : {"inproc", "shm", "zmq"})
    for (const char* element : {"f32", "bf16"}) {
      const Ran ran =
          run_convoy({"bench", "allreduce", "-n", "3", "--transport", transport, "--element",
                      element, "--bytes", "1000000", "--iterations", "2", "--json"});
      ASSERT_EQ(ran.code, 0) << ran.err;
      EXPECT_THAT(ran.out, HasSubstr("the sum is right"));
      const nlohmann::json answer = ran.answer();
      EXPECT_EQ(answer["transport"], transport);
      EXPECT_EQ(answer["ranks"], 3);
      EXPECT_EQ(answer["bytes"], 1000000);
      EXPECT_GT(answer["seconds"].get<double>(), 0);
      EXPECT_NEAR(answer["busbw_gb_s"].get<double>(), answer["algbw_gb_s"].get<double>() * 4 / 3,
                  1e-9);
    }
}

TEST(BenchAllreduce, EveryAlgorithmInTheSimulatedWorld) {
  for (const char* algorithm :
       {"ring", "halving_doubling", "tree", "reduce_broadcast", "torus", "hierarchical"}) {
    const Ran ran = run_convoy({"bench", "allreduce", "-n", "12", "--world", "sim", "--algorithm",
                                algorithm, "--alpha", "1e-5", "--beta", "1", "--json"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.answer()["algorithm"], algorithm);
  }
}

TEST(BenchAllreduce, ThePredictedRingIsWhatTheoryGives) {
  const Ran ran =
      run_convoy({"bench", "allreduce", "-n", "4", "--world", "sim", "--algorithm", "ring",
                  "--bytes", "26214400", "--alpha", "5e-5", "--beta", "0.125", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const double payload_s = 2.0 * 3 / 4 * 26214400 / 0.125e9;
  const double seconds = ran.answer()["seconds"].get<double>();
  EXPECT_GT(seconds, payload_s);
  EXPECT_LT(seconds, 1.03 * payload_s);
}

TEST(BenchAllreduce, WrongUsageIsOneLine) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--algorithm", "rign"},
                                             {"--bytes", "7"},
                                             {"--alpha", "1e-3"},
                                             {"--world", "sim", "--transport", "shm"},
                                             {"--world", "sim", "--algorithm", "native"},
                                             {"-n", "0"},
                                             {"--transport", "pigeon"}}) {
    std::vector<std::string> all = {"bench", "allreduce"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ran ran = run_convoy(all);
    EXPECT_EQ(ran.code, 2) << arguments.back();
    EXPECT_TRUE(ran.one_line()) << ran.err;
  }
}

TEST(Net, EveryPairHasALine) {
  const Ran ran = run_convoy({"net", "-n", "3", "--transport", "shm", "--max-bytes", "65536",
                              "--seconds", "0.001", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("3 ranks over shm"), HasSubstr("latency / bandwidth"),
                             HasSubstr("bandwidth by message size")));
  const nlohmann::json answer = ran.answer();
  ASSERT_EQ(answer["links"].size(), 6u);
  for (const nlohmann::json& link : answer["links"]) {
    EXPECT_NE(link["from"], link["to"]);
    EXPECT_GT(link["beta_gb_s"].get<double>(), 0);
    EXPECT_GE(link["alpha_s"].get<double>(), 0);
    EXPECT_EQ(link["points"].size(), 9u);
  }
}

TEST(Net, UnderTheLauncher) {
  const Ran ran = run_convoy({"launch", "-n", "2", "--quiet", "--no-tag", "--", CONVOY_PROGRAM,
                              "net", "--max-bytes", "1024", "--seconds", "0.001", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.answer()["links"].size(), 2u);
}

TEST(Net, OneRankIsTooFew) {
  const Ran ran = run_convoy({"net", "-n", "1"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(ran.one_line()) << ran.err;
}

}  // namespace
}  // namespace convoy
