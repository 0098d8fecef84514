// Training on several workers as a user sees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "program.h"

namespace convoy {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// 260 samples in batches of 32: eight steps and 4.
std::vector<std::string> small_run(const std::string& out) {
  return {"train",   "--model",   "mnist_cnn",   "--data", "synthetic:1x28x28:10:260",
          "--batch", "32",        "--optimizer", "adam",   "--lr",
          "0.001",   "--threads", "1",           "--json", "--out",
          out};
}

std::vector<std::string> invariant_run(const std::string& out) {
  return with(small_run(out), {"--invariant", "--epochs", "2"});
}

std::string weights(const Ran& ran) {
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.code == 0 ? ran.answer().at("weights_sha256").get<std::string>() : "";
}

// The processes below one, those without children of their own.
std::vector<pid_t> leaves_below(pid_t process) {
  std::vector<pid_t> leaves;
  std::ifstream file("/proc/" + std::to_string(process) + "/task/" + std::to_string(process) +
                     "/children");
  pid_t child = 0;
  bool any = false;
  while (file >> child) {
    any = true;
    for (const pid_t leaf : leaves_below(child)) leaves.push_back(leaf);
  }
  if (!any) leaves.push_back(process);
  return leaves;
}

TEST(Workers, AreBitIdenticalOverEveryTransport) {
  TemporaryFolder folder;
  const auto out = [&](const char* name) { return (folder / name).string(); };
  const std::string expected = weights(run_convoy(invariant_run(out("one"))));
  for (const char* transport : {"inproc", "shm", "zmq"})
    EXPECT_EQ(weights(run_convoy(with(invariant_run(out(transport)),
                                      {"--workers", "3", "--transport", transport}))),
              expected)
        << transport;
  EXPECT_EQ(weights(run_words(with(
                {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", CONVOY_PROGRAM},
                invariant_run(out("mpi"))))),
            expected);
}

TEST(Workers, AnswerForAll) {
  TemporaryFolder folder;
  const Ran ran = run_convoy(with(small_run((folder / "out").string()),
                                  {"--workers", "2", "--epochs", "1", "--base-batch", "16"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json answer = ran.answer();
  EXPECT_EQ(answer.at("workers"), 2);
  EXPECT_EQ(answer.at("seen"), 260);
  EXPECT_EQ(answer.at("steps"), 9);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("batch 32 = 2 x 16, 8 steps + 4"),
                             HasSubstr("learning rate 0.002 = 0.001 x 32 / 16")));
}

TEST(Workers, GoOnAfterCtrlCWithTheSameBits) {
  TemporaryFolder whole, folder;
  const std::string out = (folder / "out").string();
  const std::vector<std::string> more = {"--workers", "2"};
  const std::string expected =
      weights(run_convoy(with(invariant_run((whole / "out").string()), more)));
  const Ran stopped =
      run_convoy(with(invariant_run(out), more),
                 {.mark = "workers:", .on_mark = [](pid_t child) { ::kill(child, SIGINT); }});
  ASSERT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("convoy train --resume " + out));
  EXPECT_EQ(weights(run_convoy({"train", "--resume", out, "--json"})), expected);
}

TEST(Workers, EndTogetherWhenOneIsKilledAndGoOn) {
  TemporaryFolder whole, folder;
  const std::string out = (folder / "out").string();
  const std::vector<std::string> more = {"--invariant", "--workers", "3", "--epochs", "3"};
  const std::string expected = weights(run_convoy(with(small_run((whole / "out").string()), more)));
  const Ran killed =
      run_convoy(with(small_run(out), more), {.mark = "epoch 2/3", .on_mark = [](pid_t child) {
                                                ::kill(leaves_below(child).back(), SIGKILL);
                                              }});
  EXPECT_EQ(killed.code, 1) << killed.err;
  EXPECT_THAT(killed.err, HasSubstr("was killed by signal 9 (SIGKILL)"));
  EXPECT_EQ(weights(run_convoy({"train", "--resume", out, "--workers", "1", "--json"})), expected);
}

TEST(Workers, AreRefusedInOneLine) {
  TemporaryFolder folder;
  folder.write("hosts", "nowhere.invalid\n");
  folder.write("cluster", "workers = 2\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--workers", "0"}, "--workers must be a whole number from 1"},
      {{"--workers", "33"}, "--workers 33 is more than the 32 samples of a batch"},
      {{"--workers", "2", "--algorithm", "rings"}, "ring"},
      {{"--workers", "2", "--wire", "topk:7"}, "--wire"},
      {{"--workers", "2", "--balance", "1:2:3"}, "there are 2 workers"},
      {{"--world", "sim"}, "--cluster FILE"},
      {{"--world", "sim", "--cluster", (folder / "cluster").string()}, "images_per_s is missing"},
      {{"--invariant", "--batch-norm", "sync"}, "exclude each other"},
  };
  for (const auto& [arguments, text] : cases) {
    const Ran ran = run_convoy(with(small_run((folder / "out").string()), arguments));
    EXPECT_EQ(ran.code, 2) << text << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(text));
    EXPECT_FALSE(std::filesystem::exists(folder / "out")) << text;
  }
  const Ran unknown = run_convoy(
      with(small_run((folder / "out").string()), {"--hosts", (folder / "hosts").string()}));
  EXPECT_NE(unknown.code, 0);
  EXPECT_THAT(unknown.err, HasSubstr("nowhere.invalid"));
}

TEST(Workers, OfASimulatedClusterGiveTheSameBitsTwice) {
  TemporaryFolder folder;
  folder.write("cluster", "workers = 8\nimages_per_s = 1000\ngbit_per_s = 1\n");
  const auto run = [&](const std::string& name) {
    return run_convoy(
        with(small_run((folder / name).string()),
             {"--epochs", "1", "--world", "sim", "--cluster", (folder / "cluster").string()}));
  };
  const Ran first = run("a"), second = run("b");
  EXPECT_EQ(weights(first), weights(second));
  EXPECT_EQ(first.answer().at("wall_s"), second.answer().at("wall_s"));
}

}  // namespace
}  // namespace convoy
