// Training on several workers as a user sees it.
#include <fmt/format.h>
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

// Files as MNIST's, with numbers that mean nothing.
std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += char(number >> shift & 0xff);
  return bytes;
}
std::string idx_images(int count, int side) {
  return big_endian(0x803) + big_endian(std::uint32_t(count)) + big_endian(std::uint32_t(side)) +
         big_endian(std::uint32_t(side)) + std::string(std::size_t(count * side * side), '\x40');
}
std::string idx_labels(int count) {
  std::string labels;
  for (int i = 0; i < count; ++i) labels += char(i % 10);
  return big_endian(0x801) + big_endian(std::uint32_t(count)) + labels;
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

TEST(Workers, SlowAreBitIdenticalOverEveryTransport) {
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

TEST(Workers, SlowGoOnAfterCtrlCWithTheSameBits) {
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

TEST(Workers, KeepTheCaseOfANumberThatIsNone) {
  TemporaryFolder folder;
  const Ran failed = run_convoy(
      {"train", "--model", "shallow", "--data", "synthetic:1x28x28:10:260", "--batch", "32", "--lr",
       "1e6", "--epochs", "50", "--workers", "2", "--out", (folder / "out").string()});
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.err, AllOf(HasSubstr("worker "), HasSubstr("is not a finite number"),
                                HasSubstr("convoy replay ")));
  const std::string start = "convoy replay ";
  const std::size_t at = failed.err.find(start) + start.size();
  const std::string file = failed.err.substr(at, failed.err.find(' ', at) - at);
  ASSERT_TRUE(std::filesystem::exists(file)) << file;
  const Ran again = run_convoy({"replay", file, "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.answer().at("reproduced"), true) << again.out;
  EXPECT_EQ(again.answer().at("samples").size(), 16u);
  const Ran other = run_convoy({"replay", (folder / "out/nothing.safetensors").string()});
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(other.one_line()) << other.err;
}

TEST(Workers, EndTogetherWhenTheDiskIsFull) {
  TemporaryFolder folder;
  const std::string small = (folder / "small").string();
  std::filesystem::create_directories(small);
  folder.write("enter", fmt::format("mount -t tmpfs -o size=1m none {} && exec \"$@\"\n", small));
  const Ran ran =
      run_words(with({"unshare", "--mount", "sh", (folder / "enter").string(), CONVOY_PROGRAM},
                     with(small_run(small + "/out"), {"--workers", "2"})));
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_THAT(ran.err, AllOf(HasSubstr(small + "/out"), HasSubstr("No space left on device")));
}

// The second host has another file where the data are.
TEST(Workers, WithOtherDataAreRefusedAtTheStart) {
  TemporaryFolder folder;
  for (const char* name : {"data/mnist", "other/mnist"})
    std::filesystem::create_directories(folder / name);
  for (const auto& [place, count] : {std::pair{"data", 64}, std::pair{"other", 65}})
    for (const char* part : {"train", "t10k"}) {
      const std::string prefix = fmt::format("{}/mnist/{}", place, part);
      folder.write(prefix + "-images-idx3-ubyte", idx_images(count, 28));
      folder.write(prefix + "-labels-idx1-ubyte", idx_labels(count));
    }
  folder.write("enter", fmt::format("mount --bind {} {} && exec \"$@\"\n",
                                    (folder / "other").string(), (folder / "data").string()));
  folder.write("hosts", fmt::format("one address=127.0.0.1 agent=\"env\"\ntwo address=127.0.0.1 "
                                    "agent=\"unshare --mount sh {}\"\n",
                                    (folder / "enter").string()));
  const Ran ran =
      run_convoy({"train", "--model", "shallow", "--data", "mnist", "--data-root",
                  (folder / "data").string(), "--batch", "16", "--epochs", "1", "--hosts",
                  (folder / "hosts").string(), "--out", (folder / "out").string()});
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_THAT(ran.err,
              AllOf(HasSubstr("worker 1 has other data"), HasSubstr("65 training samples")));
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

TEST(ServersOfAProgram, GoOnWithOtherWorkers) {
  TemporaryFolder folder;
  const std::string out = (folder / "out").string();
  const Ran begun = run_convoy(
      with(small_run(out), {"--sync", "ps", "--servers", "1", "--workers", "2", "--epochs", "1"}));
  ASSERT_EQ(begun.code, 0) << begun.err;
  const Ran more =
      run_convoy({"train", "--resume", out, "--workers", "3", "--epochs", "2", "--json"});
  ASSERT_EQ(more.code, 0) << more.err;
  EXPECT_EQ(more.answer().at("workers"), 3);
  EXPECT_EQ(more.answer().at("history").at(1).at("seen"), 260);
}

TEST(ServersOfAProgram, WrongPoliciesAreRefusedBeforeAnythingStarts) {
  TemporaryFolder folder;
  for (const char* policy : {"backup:2", "ssp:-1", "asnyc", "dc:x"}) {
    const Ran ran =
        run_convoy(with(small_run((folder / "out").string()),
                        {"--sync", "ps", "--servers", "1", "--workers", "2", "--policy", policy}));
    EXPECT_EQ(ran.code, 2) << policy;
    EXPECT_TRUE(ran.one_line()) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("--policy")) << policy;
  }
}

}  // namespace
}  // namespace convoy
