// Training as a user sees it, on small synthetic data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "program.h"

namespace convoy {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// The first 250 samples of 256, in steps of 32: the last batch is smaller.
std::vector<std::string> small_run(const TemporaryFolder& folder, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"train",
                                        "--model",
                                        "shallow",
                                        "--data",
                                        "synthetic:1x28x28:10:256",
                                        "--limit",
                                        "250",
                                        "--batch",
                                        "32",
                                        "--epochs",
                                        "2",
                                        "--json",
                                        "--out",
                                        (folder / "out").string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Train, AnswersWithTheNamesThatScriptsRelyOn) {
  TemporaryFolder folder;
  const Ran ran = run_convoy(small_run(folder, {}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json answer = ran.answer();
  for (const char* name : {"test_accuracy", "test_loss", "train_loss", "images_per_s", "wall_s",
                           "epochs", "steps", "workers", "servers", "weights_sha256", "seen",
                           "missing", "twice", "run", "checkpoint", "history"})
    EXPECT_TRUE(answer.contains(name)) << name;
  EXPECT_EQ(answer.at("epochs"), 2);
  EXPECT_EQ(answer.at("steps"), 16);
  EXPECT_EQ(answer.at("seen"), 250);
  EXPECT_EQ(answer.at("missing"), 0);
  EXPECT_EQ(answer.at("twice"), 0);
  EXPECT_EQ(answer.at("workers"), 1);
  EXPECT_EQ(answer.at("servers"), 0);
  EXPECT_EQ(answer.at("history").size(), 2u);
  EXPECT_EQ(answer.at("weights_sha256").get<std::string>().size(), 64u);
  EXPECT_TRUE(std::filesystem::exists(answer.at("checkpoint").get<std::string>()));
  EXPECT_FALSE(folder.has_parts());
  EXPECT_THAT(ran.err, HasSubstr("250 seen, 0 missing, 0 twice"));
}

TEST(Train, RecordsWhatIsNeededToRepeat) {
  TemporaryFolder folder;
  ASSERT_EQ(run_convoy(small_run(folder, {"--seed", "7"})).code, 0);
  std::ifstream file(folder / "out/run.json");
  const json record = json::parse(file);
  EXPECT_EQ(record.at("configuration").at("seed"), 7);
  EXPECT_EQ(record.at("configuration").at("batch"), 32);
  EXPECT_EQ(record.at("state"), "finished");
  for (const char* name : {"commit", "host", "cpu", "threads", "compiler", "libraries"})
    EXPECT_TRUE(record.at("environment").contains(name)) << name;
  EXPECT_TRUE(record.at("result").contains("test_accuracy"));
}

TEST(Train, SameSeedSameBitsTwiceAndAnotherSeedOthers) {
  TemporaryFolder one, two, three;
  const json first = run_convoy(small_run(one, {})).answer();
  const json second = run_convoy(small_run(two, {})).answer();
  const json other = run_convoy(small_run(three, {"--seed", "2"})).answer();
  EXPECT_EQ(first.at("weights_sha256"), second.at("weights_sha256"));
  EXPECT_EQ(first.at("test_loss"), second.at("test_loss"));
  EXPECT_NE(first.at("weights_sha256"), other.at("weights_sha256"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which map terabytes
// One worker needs no 4 GiB of addresses to share with nobody.
TEST(Train, NeedsFewAddresses) {
  const TemporaryFolder folder;
  std::vector<std::string> words = {"sh", "-c", "ulimit -v 2000000 && exec \"$0\" \"$@\"",
                                    CONVOY_PROGRAM};
  const std::vector<std::string> run = small_run(folder, {"--threads", "1"});
  words.insert(words.end(), run.begin(), run.end());
  const Ran ran = run_words(words);
  EXPECT_EQ(ran.code, 0) << ran.err;
}
#endif

TEST(Train, FlagsWinOverTheConfigurationFile) {
  TemporaryFolder folder;
  folder.write("run.toml", "batch = 100\nepochs = 1\nlr = 0.05\n");
  std::vector<std::string> arguments = {"train",
                                        "--config",
                                        (folder / "run.toml").string(),
                                        "--print-config",
                                        "--model",
                                        "shallow",
                                        "--data",
                                        "mnist",
                                        "--batch",
                                        "32"};
  const Ran ran = run_convoy(arguments);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("batch = 32\n"));
  EXPECT_THAT(ran.out, HasSubstr("epochs = 1\n"));
  EXPECT_THAT(ran.out, HasSubstr("lr = 0.05\n"));
}

TEST(Train, PrintedConfigurationIsAConfigurationFile) {
  TemporaryFolder folder;
  const Ran first = run_convoy({"train", "--print-config", "--model", "shallow", "--data", "mnist",
                                "--nesterov", "--milestones", "3,5", "--schedule", "step"});
  ASSERT_EQ(first.code, 0) << first.err;
  folder.write("printed.toml", first.out);
  EXPECT_EQ(
      run_convoy({"train", "--print-config", "--config", (folder / "printed.toml").string()}).out,
      first.out);
}

TEST(Train, EvalOfTheFinalCheckpointRepeatsTheScore) {
  TemporaryFolder folder;
  const json trained = run_convoy(small_run(folder, {})).answer();
  const Ran ran = run_convoy(
      {"eval", trained.at("checkpoint"), "--data", "synthetic:1x28x28:10:256", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json scored = ran.answer();
  EXPECT_EQ(scored.at("test_accuracy"), trained.at("test_accuracy"));
  EXPECT_NEAR(scored.at("test_loss"), trained.at("test_loss"), 1e-5);
  EXPECT_TRUE(scored.contains("samples"));
  EXPECT_TRUE(scored.contains("images_per_s"));
}

TEST(Train, InitWithOtherClassesLeavesTheHeadFreshAndSaysSo) {
  TemporaryFolder folder, other;
  const json trained = run_convoy(small_run(folder, {})).answer();
  const Ran ran = run_convoy({"train", "--model", "shallow", "--data", "synthetic:1x28x28:7:256",
                              "--epochs", "1", "--json", "--out", (other / "out").string(),
                              "--init", trained.at("checkpoint")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("fresh"));
}

TEST(Train, KeepsOnlyTheLastCheckpoints) {
  TemporaryFolder folder;
  ASSERT_EQ(run_convoy(small_run(folder, {"--epochs", "4", "--keep", "1"})).code, 2)
      << "--epochs twice is an error";
  std::vector<std::string> arguments = small_run(folder, {"--keep", "1"});
  ASSERT_EQ(run_convoy(arguments).code, 0);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "out/checkpoints"))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("epoch-0002-step-000000.safetensors",
                                                     "epoch-0002-step-000000.state.safetensors"));
}

TEST(Train, DivergenceStopsWithEpochStepAndRemedy) {
  TemporaryFolder folder;
  const Ran ran = run_convoy(small_run(folder, {"--lr", "1e6", "--schedule", "constant"}));
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("epoch 1, step"));
  EXPECT_THAT(ran.err, HasSubstr("lower --lr"));
  EXPECT_FALSE(folder.has_parts());
}

}  // namespace
}  // namespace convoy
