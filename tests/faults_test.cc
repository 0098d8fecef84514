// Processes of a training with servers that are killed while it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "program.h"

namespace convoy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kWorkers = 3;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The process that is this rank, below another.
std::optional<pid_t> rank_below(pid_t parent, int rank) {
  std::istringstream children(
      text_of("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children"));
  for (pid_t child; children >> child;) {
    const std::string variable = '\0' + std::string("CONVOY_RANK=") + std::to_string(rank) + '\0';
    if (text_of("/proc/" + std::to_string(child) + "/environ").find(variable) != std::string::npos)
      return child;
    if (const auto deeper = rank_below(child, rank)) return deeper;
  }
  return std::nullopt;
}

struct Fault {
  int rank = -1;  // -1: none
  std::string transport = "shm";
  std::vector<std::string> more = {};
  bool launched = false;  // by `convoy launch --survive`
};

// Three workers and two servers; the fault strikes when the first epoch is over.
Ran train(const Fault& fault) {
  const TemporaryFolder folder;
  std::vector<std::string> words = {
      "train",     "--json",    "--threads",  "1",
      "--model",   "mnist_cnn", "--data",     "synthetic:1x28x28:10:1500",
      "--batch",   "24",        "--momentum", "0.9",
      "--lr",      "0.01",      "--epochs",   "3",
      "--sync",    "ps",        "--store",    "none",
      "--servers", "2",         "--out",      (folder / "out").string()};
  words.insert(words.end(), fault.more.begin(), fault.more.end());
  if (!fault.launched)
    words.insert(words.end(),
                 {"--workers", std::to_string(kWorkers), "--transport", fault.transport});
  if (fault.launched) {
    const std::vector<std::string> before = {"launch",      "-n", "5",  "--survive",
                                             "--only-rank", "0",  "--", CONVOY_PROGRAM};
    words.insert(words.begin(), before.begin(), before.end());
  }
  RunOptions options;
  if (fault.rank >= 0) {
    options.mark = "epoch 1/3";
    options.on_mark = [&](pid_t launcher) {
      const auto victim = rank_below(launcher, fault.rank);
      ASSERT_TRUE(victim);
      ::kill(*victim, SIGKILL);
    };
  }
  return run_convoy(words, options);
}

void expect_whole(const Ran& ran) {
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.answer().at("seen"), 1500);
  EXPECT_EQ(ran.answer().at("missing"), 0);
  EXPECT_EQ(ran.answer().at("twice"), 0);
  EXPECT_EQ(ran.answer().at("epochs"), 3);
  EXPECT_THAT(ran.err, HasSubstr("; the job goes on without it\n"));
}

TEST(Faults, SlowARunDoesWithoutAKilledWorker) {
  for (const char* transport : {"shm", "zmq"})
    for (const char* policy : {"sync", "async"}) {
      const Ran ran = train({.rank = 2, .transport = transport, .more = {"--policy", policy}});
      expect_whole(ran);
      if (HasFatalFailure()) return;
      EXPECT_THAT(ran.err, HasSubstr("worker 2 is lost")) << transport << policy;
      EXPECT_EQ(ran.answer().at("parameter_servers").at("lost_workers"), 1);
    }
}

TEST(Faults, SlowAReplicaGoesOnWithTheSameBits) {
  const std::vector<std::string> more = {"--invariant", "--replicas", "1"};
  const Ran calm = train({.more = more});
  ASSERT_EQ(calm.code, 0) << calm.err;
  for (const char* transport : {"shm", "zmq"})
    for (const int server : {0, 1}) {
      const Ran ran = train({.rank = kWorkers + server, .transport = transport, .more = more});
      expect_whole(ran);
      if (HasFatalFailure()) return;
      EXPECT_THAT(ran.err,
                  HasSubstr("goes on with its parameters, without a copy of them: 0 updates lost"));
      EXPECT_EQ(ran.answer().at("weights_sha256"), calm.answer().at("weights_sha256")) << transport;
      EXPECT_EQ(ran.answer().at("parameter_servers").at("lost_servers"), 1);
      EXPECT_EQ(ran.answer().at("parameter_servers").at("lost_updates"), 0);
    }
}

TEST(Faults, SlowASnapshotGoesOnWithWhatItHas) {
  const Ran ran =
      train({.rank = kWorkers, .more = {"--policy", "async", "--snapshot-every", "10"}});
  expect_whole(ran);
  EXPECT_EQ(ran.answer().at("parameter_servers").at("lost_servers"), 1);
  EXPECT_LT(ran.answer().at("parameter_servers").at("lost_updates"), 100);
}

TEST(Faults, SlowALaunchedJobSurvivesToo) { expect_whole(train({.rank = 1, .launched = true})); }

TEST(Faults, SlowParametersThatNobodyElseHasEndTheRun) {
  const Ran ran = train({.rank = kWorkers, .more = {"--snapshot-every", "0"}});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("server 0 is lost ("));
  EXPECT_THAT(ran.err, HasSubstr("--resume"));
  EXPECT_THAT(ran.err, Not(HasSubstr("goes on without it")));
}

TEST(Faults, SlowTheLeaderEndsTheRun) {
  const Ran ran = train({.rank = 0});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("was killed by signal 9 (SIGKILL)\n"));
}

}  // namespace
}  // namespace convoy
