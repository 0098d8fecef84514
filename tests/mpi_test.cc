// Convoy under a real mpirun: its commands, and jobs whose ranks are killed or stopped in the midst
// of an all-reduce.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <sstream>
#include <thread>

#include "program.h"
#include "watch.h"

namespace convoy {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

// mpirun's files go below `session`. More ranks than cores, and root, are allowed.
Words mpirun(int ranks, const fs::path& session, const Words& command) {
  Words words = {"env",
                 "TMPDIR=" + session.string(),
                 "OMPI_ALLOW_RUN_AS_ROOT=1",
                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                 "mpirun",
                 "--oversubscribe",
                 "-n",
                 std::to_string(ranks)};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

TEST(Mpi, SlowBenchAllreduceByTheLibraryAndByOurOwn) {
  const TemporaryFolder folder;
  for (const char* algorithm : {"native", "ring", "auto"}) {
    const Ran ran =
        run_words(mpirun(2, folder.path(),
                         {CONVOY_PROGRAM, "bench", "allreduce", "--algorithm", algorithm, "--bytes",
                          "1000000", "--iterations", "2", "--json"}));
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("the sum is right"));
    EXPECT_EQ(ran.answer()["transport"], "mpi");
    EXPECT_EQ(ran.answer()["ranks"], 2);
    if (algorithm != std::string("auto")) {
      EXPECT_EQ(ran.answer()["algorithm"], algorithm);
    }
  }
}

// Files that processes share by mapping them.
std::vector<fs::path> shared_files(const Watch& watch, int ranks) {
  std::vector<fs::path> files;
  for (int rank = 0; rank < ranks; ++rank) {
    std::istringstream maps(content(fmt::format("/proc/{}/maps", watch.pid(rank))));
    for (std::string line; std::getline(maps, line);) {
      std::istringstream words(line);
      std::string range, rights, offset, device, inode, path;
      words >> range >> rights >> offset >> device >> inode >> path;
      if (rights.ends_with("s") && fs::exists(path)) files.push_back(path);
    }
  }
  return files;
}

struct Fault {
  int signal = SIGKILL;
  int ranks = 2;
  int victim = 0;
  const char* algorithm = "ring";
};

// A job in which one rank gets the signal: it must end by itself, say whose fault it was, and leave
// nothing behind. Of a killed rank mpirun knows, and ends the job a second later; a stopped one
// shows by the deadline, at which a rank that got no processor may be late too, and is named too.
void suffer(const Fault& fault) {
  const TemporaryFolder folder;
  const fs::path session = folder / "session";
  fs::create_directory(session);
  std::unique_ptr<Watch> watch;
  std::vector<fs::path> files;
  RunOptions options{.mark = "all ready"};
  options.on_mark = [&](pid_t) {
    watch = std::make_unique<Watch>(folder, fault.ranks);
    files = shared_files(*watch, fault.ranks);
    ::kill(watch->pid(fault.victim), fault.signal);
  };
  const char* deadline_s = fault.signal == SIGKILL ? "60" : "3";
  const Ran ran = run_words(
      mpirun(fault.ranks, session,
             {CONVOY_PROBE, "reduce", folder.path().string(), fault.algorithm, deadline_s}),
      options);
  ASSERT_TRUE(watch) << ran.err;
  EXPECT_TRUE(watch->all_ended());
  EXPECT_NE(ran.code, 0);
  EXPECT_THAT(ran.err, ContainsRegex(fault.signal == SIGKILL
                                         ? fmt::format("process rank {} with PID", fault.victim)
                                         : fmt::format("ranks? ([0-9]+, )*{}(, [0-9]+)* never came",
                                                       fault.victim)));
  EXPECT_FALSE(files.empty());
  for (const fs::path& file : files) EXPECT_FALSE(fs::exists(file)) << file;
  EXPECT_TRUE(fs::is_empty(session)) << *fs::recursive_directory_iterator(session);
}

// Jobs mostly wait: some at a time.
void suffer_often(int rounds, int signal) {
  constexpr int kAtOnce = 3;
  std::atomic<int> next = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < std::min(rounds, kAtOnce); ++i)
    threads.emplace_back([&] {
      for (int round = next++; round < rounds && !testing::Test::HasFailure(); round = next++) {
        SCOPED_TRACE(fmt::format("round {}", round));
        const int ranks = 2 + round % 3;
        suffer({.signal = signal,
                .ranks = ranks,
                .victim = round * 7 % ranks,
                .algorithm = round % 2 == 0 ? "ring" : "native"});
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Mpi, AKilledRankEndsTheJobAndIsNamed) { suffer_often(3, SIGKILL); }

TEST(Mpi, SlowAStoppedRankEndsTheJobAndIsNamed) { suffer_often(3, SIGSTOP); }

TEST(Mpi, FiftyKilledRanksAreNamedSlow) { suffer_often(50, SIGKILL); }

TEST(Mpi, FiftyStoppedRanksAreNamedSlow) { suffer_often(50, SIGSTOP); }

}  // namespace
}  // namespace convoy
