// A run that stops and goes on ends with the same bits as one that never stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "program.h"

namespace convoy {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

struct Recipe {
  const char* name;
  std::vector<std::string> arguments;
};

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> list = {
      {"sgd", {"train",      "--json",     "--threads",  "1",
               "--model",    "shallow",    "--data",     "synthetic:1x28x28:10:1001",
               "--batch",    "8",          "--momentum", "0.9",
               "--nesterov", "--schedule", "cosine",     "--warmup-epochs",
               "1",          "--lr",       "0.01",       "--lookahead",
               "7:0.9"}},
      {"adam_dropout",
       {"train", "--json", "--threads", "1", "--model", "mnist_cnn", "--data",
        "synthetic:1x28x28:10:260", "--batch", "8", "--optimizer", "adam", "--lr", "0.001"}},
      {"batch_norm_Slow",
       {"train", "--json", "--threads", "1", "--model", "resnet18", "--data",
        "synthetic:3x16x16:10:66", "--batch", "8", "--augment", "crop:2,flip", "--momentum", "0.9",
        "--lr", "0.01"}},
  };
  return list;
}

class Resume : public ::testing::TestWithParam<Recipe> {
 protected:
  json uninterrupted() {
    const Ran ran = run_convoy(
        with(GetParam().arguments, {"--epochs", "2", "--out", (whole_ / "out").string()}));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.answer();
  }
  std::string out() const { return (folder_ / "out").string(); }

  TemporaryFolder whole_, folder_;
};

TEST_P(Resume, InTheMiddleOfAnEpochAfterCtrlC) {
  const Ran stopped =
      run_convoy(with(GetParam().arguments, {"--epochs", "2", "--out", out()}),
                 {.mark = "parameters", .on_mark = [](pid_t child) { ::kill(child, SIGINT); }});
  ASSERT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("convoy train --resume " + out()));
  EXPECT_EQ(stopped.answer().at("state"), "interrupted");
  EXPECT_FALSE(folder_.has_parts());
  const Ran resumed = run_convoy({"train", "--resume", out(), "--json"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const json expected = uninterrupted(), answer = resumed.answer();
  EXPECT_EQ(answer.at("weights_sha256"), expected.at("weights_sha256"));
  EXPECT_EQ(answer.at("train_loss"), expected.at("train_loss"));
  EXPECT_EQ(answer.at("test_loss"), expected.at("test_loss"));
  EXPECT_EQ(answer.at("steps"), expected.at("steps"));
  EXPECT_EQ(answer.at("history").at(0).at("seen"), expected.at("history").at(0).at("seen"));
  EXPECT_EQ(answer.at("history").at(0).at("twice"), 0);
  EXPECT_EQ(answer.at("history").at(0).at("train_loss"),
            expected.at("history").at(0).at("train_loss"));
}

INSTANTIATE_TEST_SUITE_P(Recipes, Resume, ::testing::ValuesIn(recipes()),
                         [](const auto& row) { return std::string(row.param.name); });

std::vector<std::string> tiny(const std::string& out, const char* epochs) {
  // A constant rate: a schedule that falls to zero at the last epoch is another one when there are
  // more epochs.
  return {"train",      "--json",   "--model",  "shallow", "--data", "synthetic:1x28x28:10:200",
          "--schedule", "constant", "--epochs", epochs,    "--out",  out};
}

TEST(ResumeAtABoundary, MoreEpochsGiveTheBitsOfALongerRun) {
  TemporaryFolder whole, folder;
  const std::string out = (folder / "out").string();
  ASSERT_EQ(run_convoy(tiny(out, "1")).code, 0);
  const Ran resumed = run_convoy({"train", "--resume", out, "--epochs", "3", "--json"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const json expected = run_convoy(tiny((whole / "out").string(), "3")).answer();
  EXPECT_EQ(resumed.answer().at("weights_sha256"), expected.at("weights_sha256"));
  EXPECT_EQ(resumed.answer().at("history").size(), 3u);
}

TEST(ResumeAtABoundary, ACompleteRunSaysSo) {
  TemporaryFolder folder;
  const std::string out = (folder / "out").string();
  const json trained = run_convoy(tiny(out, "1")).answer();
  const Ran again = run_convoy({"train", "--resume", out, "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("complete already"));
  EXPECT_EQ(again.answer().at("weights_sha256"), trained.at("weights_sha256"));
  EXPECT_EQ(again.answer().at("test_accuracy"), trained.at("test_accuracy"));
}

TEST(ResumeErrors, ContradictingFlagsAndMissingRunsAreOneLine) {
  TemporaryFolder folder;
  const std::string out = (folder / "out").string();
  ASSERT_EQ(run_convoy(tiny(out, "1")).code, 0);
  const Ran contradiction = run_convoy({"train", "--resume", out, "--batch", "32"});
  EXPECT_EQ(contradiction.code, 2);
  EXPECT_TRUE(contradiction.one_line()) << contradiction.err;
  EXPECT_THAT(contradiction.err, HasSubstr("--batch"));

  const Ran missing = run_convoy({"train", "--resume", (folder / "nowhere").string()});
  EXPECT_EQ(missing.code, 1);
  EXPECT_TRUE(missing.one_line()) << missing.err;
  EXPECT_THAT(missing.err, HasSubstr("nowhere"));
}

TEST(Interrupt, ASecondCtrlCQuitsAtOnce) {
  TemporaryFolder folder;
  const Ran ran = run_convoy({"train", "--json", "--threads", "1", "--model", "resnet50", "--data",
                              "synthetic:3x64x64:10:4096", "--batch", "256", "--epochs", "1",
                              "--out", (folder / "out").string()},
                             {.mark = "parameters", .on_mark = [](pid_t child) {
                                ::kill(child, SIGINT);
                                ::kill(child, SIGTERM);
                              }});
  EXPECT_EQ(ran.code, 130);
  EXPECT_EQ(ran.out, "");
}

}  // namespace
}  // namespace convoy
