// convoy launch as a user sees it: real processes on this machine.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "program.h"
#include "watch.h"

namespace convoy {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

Words launch(Words flags, const Words& command) {
  flags.insert(flags.begin(), "launch");
  flags.push_back("--");
  flags.insert(flags.end(), command.begin(), command.end());
  return flags;
}

Words shell(const std::string& script) { return {"sh", "-c", script}; }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The lines of standard error that are the launcher's own.
Words own_lines(const Ran& ran) {
  Words own;
  for (const std::string& line : lines_of(ran.err))
    if (line.starts_with("convoy: ")) own.push_back(line);
  return own;
}

// Starts ranks that wait for ever, does something to them when all are there, and keeps a watch.
struct Disturbed {
  Ran ran;
  std::unique_ptr<Watch> watch;
};

Disturbed disturb(const TemporaryFolder& folder, const Words& flags,
                  const std::function<void(pid_t launcher, const Watch&)>& action) {
  Disturbed result;
  RunOptions options{.mark = "all ready"};
  options.on_mark = [&](pid_t launcher) {
    result.watch = std::make_unique<Watch>(folder, 4);
    action(launcher, *result.watch);
  };
  result.ran = run_convoy(launch(flags, {CONVOY_PROBE, "wait", folder.path().string()}), options);
  return result;
}

TEST(Launch, RanksRunAndTheirLinesAreTagged) {
  const Ran ran = run_convoy(
      launch({"-n", "3", "--tag"}, shell("echo out $CONVOY_RANK of $CONVOY_SIZE; echo err >&2")));
  EXPECT_EQ(ran.code, 0);
  for (const int rank : {0, 1, 2}) {
    EXPECT_THAT(ran.out, HasSubstr(fmt::format("[{}] out {} of 3\n", rank, rank)));
    EXPECT_THAT(ran.err, HasSubstr(fmt::format("[{}] err\n", rank)));
  }
}

TEST(Launch, AnswersInAPipeAreUntagged) {
  const Ran ran = run_convoy(launch({"-n", "2", "--only-rank", "1", "--no-tag"},
                                    shell("echo '{\"rank\":'$CONVOY_RANK'}'; echo said >&2")));
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "{\"rank\":1}\n");
  EXPECT_THAT(ran.err, AllOf(HasSubstr("said\n"), Not(HasSubstr("["))));
}

TEST(Launch, ThousandsOfLinesStayWhole) {
  const Ran ran = run_convoy(launch(
      {"-n", "4", "--tag"},
      shell("i=0; while [ $i -lt 3000 ]; do echo $CONVOY_RANK line $i abcdefghijklmnopqrstuvwxyz; "
            "i=$((i+1)); done")));
  ASSERT_EQ(ran.code, 0);
  std::map<int, int> next;
  for (const std::string& line : lines_of(ran.out)) {
    const int rank = line.at(1) - '0';
    ASSERT_EQ(line,
              fmt::format("[{}] {} line {} abcdefghijklmnopqrstuvwxyz", rank, rank, next[rank]++));
  }
  for (const int rank : {0, 1, 2, 3}) EXPECT_EQ(next[rank], 3000);
}

TEST(Launch, BytesPassAsTheyAre) {
  TemporaryFolder folder;
  std::string bytes(3 << 20, 'x');  // one long line among lines with every byte
  for (int i = 0; i < 5000; ++i) bytes[std::size_t(i)] = char(i * 7);
  folder.write("bytes", bytes);
  const Ran ran = run_convoy(launch({"-n", "1"}, {"cat", (folder / "bytes").string()}));
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.out == bytes) << ran.out.size() << " of " << bytes.size();
}

TEST(Launch, UnfinishedLinesOfSeveralRanksDoNotMix) {
  const Ran ran = run_convoy(launch({"-n", "3"}, shell("printf abc")));
  EXPECT_EQ(ran.out, "abc\nabc\nabc");
}

TEST(Launch, TheFirstFailureDecidesTheExitCodeAndEndsTheRest) {
  const Ran ran =
      run_convoy(launch({"-n", "4"}, shell("[ $CONVOY_RANK = 2 ] && exit 7; exec sleep 1000")));
  EXPECT_EQ(ran.code, 7);
  const Words own = own_lines(ran);
  ASSERT_EQ(own.size(), 2u) << ran.err;  // the cores, the reason
  EXPECT_THAT(own[1], AllOf(HasSubstr("rank 2 (pid "), HasSubstr("host localhost"),
                            HasSubstr("exit code 7")));
}

TEST(Launch, RanksJoinThroughSharedMemory) {
  const Ran ran = run_convoy(launch({"-n", "4"}, {CONVOY_PROBE, "ring"}));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "sum 6\n");
}

TEST(Launch, RanksJoinThroughZmqAndKeysStayHidden) {
  for (const char* encrypt : {"on", "off"}) {
    const Ran ran = run_convoy(
        launch({"-n", "3", "--transport", "zmq", "--encrypt", encrypt}, {CONVOY_PROBE, "secrets"}));
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, AllOf(HasSubstr("sum 3\n"), HasSubstr("hidden\n")));
  }
}

TEST(Launch, AKilledRankIsNamedAndEndsTheRest) {
  for (const char* transport : {"shm", "zmq"}) {
    TemporaryFolder folder;
    pid_t victim = 0;
    const Disturbed end =
        disturb(folder, {"-n", "4", "--transport", transport}, [&](pid_t, const Watch& watch) {
          victim = watch.pid(2);
          ::kill(victim, SIGKILL);
        });
    EXPECT_EQ(end.ran.code, 137);
    const Words own = own_lines(end.ran);
    ASSERT_EQ(own.size(), 2u) << end.ran.err;
    EXPECT_EQ(own[1], fmt::format("convoy: rank 2 (pid {}, host localhost) was killed by signal 9 "
                                  "(SIGKILL)",
                                  victim));
    ASSERT_TRUE(end.watch);
    EXPECT_TRUE(end.watch->all_ended());
  }
}

TEST(Launch, AnInterruptIsPassedOn) {
  TemporaryFolder folder;
  const Disturbed end =
      disturb(folder, {"-n", "4"}, [](pid_t launcher, const Watch&) { ::kill(launcher, SIGINT); });
  EXPECT_EQ(end.ran.code, 130);
  EXPECT_THAT(end.ran.err, HasSubstr("SIGINT passed on"));
  ASSERT_TRUE(end.watch);
  EXPECT_TRUE(end.watch->all_ended());
}

TEST(Launch, ASecondInterruptKills) {
  TemporaryFolder folder;
  const std::string fifo = (folder / "heard").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  RunOptions options{.mark = "deaf"};
  options.on_mark = [&](pid_t launcher) {
    ::kill(launcher, SIGINT);
    EXPECT_EQ(content(fifo), "INT\n");  // blocks until the rank has heard it
    ::kill(launcher, SIGINT);
  };
  const std::string script = fmt::format(
      "trap 'echo INT > {}' INT; echo deaf >&2; while :; do sleep 1000 & wait; done", fifo);
  EXPECT_EQ(run_convoy(launch({"-n", "1"}, shell(script)), options).code, 130);
}

TEST(Launch, RanksDieWithTheLauncher) {
  TemporaryFolder folder;
  const Disturbed end =
      disturb(folder, {"-n", "4"}, [](pid_t launcher, const Watch&) { ::kill(launcher, SIGKILL); });
  EXPECT_EQ(end.ran.code, 137);
  ASSERT_TRUE(end.watch);
  EXPECT_TRUE(end.watch->all_ended());
}

TEST(Launch, ProcessesThatRanksLeaveBehindAreEnded) {
  TemporaryFolder folder;
  const Ran ran = run_convoy(launch(
      {"-n", "1", "--folder", folder.path().string()},
      shell(
          "mkfifo up; setsid sh -c 'echo $$ > stray; echo > up; exec sleep 1000' & read x < up")));
  EXPECT_EQ(ran.code, 0) << ran.err;
  const pid_t stray = std::stoi(content(folder / "stray"));
  EXPECT_EQ(::kill(stray, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(Launch, AJobPastItsTimeIsEnded) {
  const Ran ran = run_convoy(launch({"-n", "2", "--timeout", "0.2"}, {"sleep", "1000"}));
  EXPECT_EQ(ran.code, 124);
  EXPECT_THAT(ran.err, HasSubstr("--timeout 0.2 s"));
}

TEST(Launch, RanksThatDifferAreRefused) {
  const Ran arguments =
      run_convoy(launch({"-n", "2"}, shell("exec " CONVOY_PROBE " ring lr=$CONVOY_RANK")));
  EXPECT_EQ(arguments.code, 1);
  EXPECT_THAT(arguments.err, AllOf(HasSubstr("`ring lr=1`"), HasSubstr("`ring lr=0`")));

  const Ran build =
      run_convoy(launch({"-n", "2"}, shell("[ $CONVOY_RANK = 0 ] && exec " CONVOY_PROBE
                                           " ring; exec " CONVOY_OTHER_PROBE " ring")));
  EXPECT_EQ(build.code, 1);
  EXPECT_THAT(build.err, AllOf(HasSubstr("rank 1 (host localhost) runs build "),
                               HasSubstr("install the same program")));
}

TEST(Launch, CoresAreDividedAndSaid) {
  const Ran pinned = run_convoy(
      launch({"-n", "1", "--cores-per-rank", "1"}, shell("nproc; echo $OMP_NUM_THREADS")));
  EXPECT_EQ(pinned.out, "1\n1\n");
  EXPECT_THAT(pinned.err, HasSubstr("1 rank, 1 core each, pinned"));
  const Ran greedy = run_convoy(launch({"-n", "4", "--cores-per-rank", "4096"}, {"true"}));
  EXPECT_EQ(greedy.code, 2);
  EXPECT_TRUE(greedy.one_line()) << greedy.err;
  EXPECT_THAT(greedy.err, HasSubstr("--cores-per-rank"));
}

TEST(Launch, UnderMpirunItBecomesOneOfTheRanks) {
  const RunOptions mpirun{.environment = {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"}};
  const Ran ran =
      run_convoy(launch({}, shell("echo ${CONVOY_JOB_FD-none} $OMPI_COMM_WORLD_RANK")), mpirun);
  const Ran other = run_convoy(launch({"-n", "3"}, {"true"}), mpirun);
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "none 1\n");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(other.one_line()) << other.err;
}

TEST(Launch, BadInputIsOneLine) {
  TemporaryFolder folder;
  folder.write("hosts", "a\nb slots=0\n");
  const std::string hosts = (folder / "hosts").string();
  const std::vector<std::pair<Words, std::string>> cases = {
      {launch({"-n", "0"}, {"true"}), "-n 0"},
      {launch({"-n", "1025"}, {"true"}), "1024"},
      {launch({"-n", "2"}, {}), "what the ranks shall run"},
      {launch({}, {"true"}), "-n 0"},
      {launch({"-n", "2"}, {"no-such-program"}), "no-such-program: No such file"},
      {launch({"-n", "2", "--folder", "/no/such"}, {"true"}), "/no/such"},
      {launch({"-n", "2", "--only-rank", "2"}, {"true"}), "--only-rank 2"},
      {launch({"-n", "2", "--transport", "pigeon"}, {"true"}), "--transport"},
      {launch({"--hosts", hosts}, {"true"}), "hosts:2: slots=0"},
  };
  for (const auto& [arguments, text] : cases) {
    const Ran ran = run_convoy(arguments);
    EXPECT_EQ(ran.code, 2) << text;
    EXPECT_TRUE(ran.one_line()) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(text));
  }
}

}  // namespace
}  // namespace convoy
