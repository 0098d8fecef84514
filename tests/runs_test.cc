// The run store as users meet it: convoy train records, convoy runs reads.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <set>

#include "program.h"

namespace convoy {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::vector<std::string> training(const std::vector<std::string>& more) {
  std::vector<std::string> words = {
      "train",   "--model", "shallow",  "--data", "synthetic:1x28x28:10:96",
      "--batch", "32",      "--epochs", "2",      "--threads",
      "1",       "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json runs(const TemporaryFolder& folder, std::vector<std::string> more = {}) {
  more.insert(more.begin(), "runs");
  more.push_back("--json");
  const Ran ran = run_convoy(more, {.folder = folder.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.answer();
}

std::string said(const TemporaryFolder& folder, const std::vector<std::string>& words, int code) {
  const Ran ran = run_convoy(words, {.folder = folder.path()});
  EXPECT_EQ(ran.code, code);
  EXPECT_TRUE(ran.one_line()) << ran.err;
  return ran.err;
}

TEST(Runs, WrongFiltersAreNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT(said(folder, {"runs", "--state", "foo"}, 2), HasSubstr("--state"));
  EXPECT_THAT(said(folder, {"runs", "--workers", "0"}, 2), HasSubstr("--workers"));
}

TEST(Runs, AreNotEnteredWhenTheirLogsCannotBeWritten) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_convoy(training({"--out", "first"}), {.folder = folder.path()}).code, 0);
  said(folder, training({"--out", "second", "--tensorboard", "/proc/none"}), 1);
  EXPECT_EQ(runs(folder).at("runs").size(), 1u);
}

TEST(Runs, AreListedShownComparedExportedAndDeleted) {
  const TemporaryFolder folder;
  const Ran first = run_convoy(training({"--out", "first"}), {.folder = folder.path()});
  const Ran second =
      run_convoy(training({"--out", "second", "--lr", "0.02"}), {.folder = folder.path()});
  ASSERT_EQ(first.code, 0) << first.err;
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(first.answer().at("run"), "first");
  const json list = runs(folder).at("runs");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].at("run"), "second");
  EXPECT_EQ(list[0].at("state"), "finished");
  EXPECT_EQ(list[0].at("steps"), 6);
  EXPECT_EQ(runs(folder, {"--model", "vgg16"}).at("runs").size(), 0u);
  EXPECT_EQ(runs(folder, {"--name", "fir"}).at("runs").size(), 1u);
  const json shown = runs(folder, {"show", "first"});
  EXPECT_EQ(shown.at("epochs_done").size(), 2u);
  EXPECT_GT(shown.at("ledger_s").at("0").at("backward").get<double>(), 0);
  EXPECT_FALSE(shown.at("verdict").get<std::string>().empty());
  const json differences = runs(folder, {"diff", "first", "second"});
  EXPECT_EQ(differences.at("settings"), (json{{"lr", {0.01, 0.02}}}));
  const Ran csv =
      run_convoy({"runs", "export", "first", "--table", "steps"}, {.folder = folder.path()});
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 7);
  EXPECT_THAT(csv.out, HasSubstr("forward_ns"));
  EXPECT_EQ(
      run_convoy({"runs", "export", "first", "-o", "all.json"}, {.folder = folder.path()}).code, 0);
  std::ifstream file(folder / "all.json");
  EXPECT_EQ(json::parse(file).at("steps").size(), 6u);
  EXPECT_EQ(runs(folder, {"delete", "first"}).at("deleted").at(0), "first");
  EXPECT_EQ(runs(folder).at("runs").size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(folder / "first/final.safetensors"));
}

TEST(Runs, TextForPeople) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_convoy(training({"--out", "a"}), {.folder = folder.path()}).code, 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"runs"}, {"runs", "show", "a"}, {"runs", "diff", "a", "a"}}) {
    const Ran ran = run_convoy(words, {.folder = folder.path()});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("a"));
    EXPECT_EQ(ran.err, "");
  }
}

TEST(Runs, TraceTensorBoardAndMlLogAreWritten) {
  const TemporaryFolder folder;
  const Ran ran = run_convoy(training({"--out", "a", "--trace", "t.json", "--tensorboard", "tb",
                                       "--mllog", "ml.log", "--workers", "2"}),
                             {.folder = folder.path()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::ifstream file(folder / "t.json");
  const json trace = json::parse(file);
  std::set<int> ranks;
  int arrows = 0;
  for (const json& event : trace.at("traceEvents")) {
    ranks.insert(event.at("pid").get<int>());
    arrows += event.at("ph") == "s";
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1}));
  EXPECT_GT(arrows, 0);
  EXPECT_FALSE(std::filesystem::is_empty(folder / "tb"));
  std::ifstream log(folder / "ml.log");
  const std::string text{std::istreambuf_iterator<char>(log), {}};
  EXPECT_THAT(text, HasSubstr("\"eval_accuracy\""));
  EXPECT_THAT(text, HasSubstr("\"run_stop\""));
}

TEST(Runs, BadStoresAreRefusedInOneLine) {
  const TemporaryFolder folder;
  EXPECT_THAT(said(folder, {"runs"}, 1), HasSubstr("there is no run store yet"));
  folder.write("text.db", std::string(4096, 'x'));
  EXPECT_THAT(said(folder, {"runs", "--store", "text.db"}, 1), HasSubstr("no run store"));
  EXPECT_THAT(said(folder, training({"--store", "text.db"}), 1), HasSubstr("text.db"));
  EXPECT_THAT(said(folder, training({"--store", "/proc/none/x.db"}), 1), HasSubstr("/proc/none"));
  ASSERT_EQ(run_convoy(training({"--out", "a"}), {.folder = folder.path()}).code, 0);
  EXPECT_THAT(said(folder, {"runs", "show", "b"}, 2), HasSubstr("did you mean a?"));
  EXPECT_THAT(said(folder, {"runs", "export", "a", "--format", "csv"}, 2), HasSubstr("--table"));
  EXPECT_THAT(said(folder, {"runs", "export", "a", "--table", "stps"}, 2), HasSubstr("steps"));
  EXPECT_THAT(said(folder, training({"--trace", "t.json", "--store", "none"}), 2),
              HasSubstr("--trace needs the run store"));
}

TEST(RunsSlow, LedgersSumToWallTimeOnEveryTransport) {
  for (const char* transport : {"inproc", "shm", "zmq"}) {
    const TemporaryFolder folder;
    const Ran ran = run_convoy(training({"--out", "a", "--workers", "3", "--transport", transport,
                                         "--batch-norm", "sync"}),
                               {.folder = folder.path()});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_LT(ran.answer().at("ledger_error").get<double>(), 1e-3) << transport;
    const json shown = runs(folder, {"show", "a"});
    ASSERT_EQ(shown.at("ledger_s").size(), 3u) << transport;
    const Ran exported = run_convoy({"runs", "export", "a"}, {.folder = folder.path()});
    const json all = json::parse(exported.out);
    EXPECT_EQ(all.at("steps").size(), 3 * 6u) << transport;
    for (const json& rank : all.at("ranks")) {
      double sum_s = 0;
      for (const auto& [phase, seconds] :
           shown.at("ledger_s").at(std::to_string(rank.at("rank").get<int>())).items())
        sum_s += seconds.get<double>();
      EXPECT_NEAR(sum_s, rank.at("wall_s").get<double>(), 1e-3 * sum_s) << transport;
      EXPECT_NE(rank.at("host"), "") << transport;
    }
  }
}

// Waits for the process to end, for so long at most.
bool ends_within(pid_t child, int milliseconds) {
  pollfd watched{.fd = int(::syscall(SYS_pidfd_open, child, 0)), .events = POLLIN, .revents = 0};
  const bool ended = ::poll(&watched, 1, milliseconds) > 0;
  ::close(watched.fd);
  return ended;
}

// Waits until the file is there; false where the process ended before.
bool wait_for_file(const std::filesystem::path& path, pid_t child) {
  while (!std::filesystem::exists(path))
    if (ends_within(child, 1)) return false;
  return true;
}

// Killed at any moment, a run leaves a store that is read at once, with all but its last second.
TEST(RunsSlow, SurviveBeingKilledAtAnyMoment) {
  const TemporaryFolder folder;
  std::mt19937 random(1);
  const std::string store = (folder / "convoy.db").string();
  for (int i = 0; i < 100; ++i) {
    const std::string out = fmt::format("run{}", i);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::freopen("/dev/null", "w", stdout);
      std::freopen("/dev/null", "w", stderr);
      ::execl(CONVOY_PROGRAM, CONVOY_PROGRAM, "train", "--model", "shallow", "--data",
              "synthetic:1x28x28:10:512", "--batch", "32", "--epochs", "1000", "--threads", "1",
              "--out", (folder / out).c_str(), "--store", store.c_str(), nullptr);
      ::_exit(126);
    }
    ASSERT_TRUE(wait_for_file(folder / out / "run.json", child));
    ASSERT_FALSE(ends_within(child, int(random() % (i < 90 ? 300 : 2500))));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Ran listed = run_convoy({"runs", "--store", store, "--json"}, {});
    ASSERT_EQ(listed.code, 0) << listed.err;
    const json all = listed.answer().at("runs");
    ASSERT_EQ(all.size(), std::size_t(i + 1)) << "a run is lost";
    EXPECT_EQ(all[0].at("run"), out);
    EXPECT_EQ(all[0].at("state"), "lost");
  }
  // The later ones ran for more than a second: what they recorded is there.
  const Ran ran = run_convoy({"runs", "export", "run99", "--store", store}, {});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out).at("runs").size(), 1u);
}

}  // namespace
}  // namespace convoy
