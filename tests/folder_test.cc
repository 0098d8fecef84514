// What a run does to its folder, and what becomes of it when its streams or its disk fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "program.h"

namespace convoy {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> train_into(const TemporaryFolder& folder,
                                    const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"train",
                                        "--model",
                                        "shallow",
                                        "--data",
                                        "synthetic:1x28x28:10:256",
                                        "--out",
                                        (folder / "out").string(),
                                        "--threads",
                                        "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Folder, RunOutlivesItsStandardError) {
  for (const char* stream : {"/dev/full", "closed"}) {
    TemporaryFolder folder;
    const Ran ran =
        run_convoy(train_into(folder, {"--epochs", "1", "--json"}), {.standard_error = stream});
    EXPECT_EQ(ran.code, 0) << stream;
    const std::string weights = ran.answer().at("checkpoint");
    EXPECT_EQ(run_convoy({"eval", weights, "--data", "synthetic:1x28x28:10:256"}).code, 0);
  }
}

TEST(Folder, OneRunAtATime) {
  TemporaryFolder folder;
  Ran second;
  const Ran first =
      run_convoy(train_into(folder, {"--epochs", "1000"}),
                 {.mark = "epoch    2/1000", .on_mark = [&](pid_t process) {
                    second = run_convoy({"train", "--resume", (folder / "out").string()});
                    ::kill(process, SIGINT);
                  }});
  EXPECT_EQ(first.code, 130) << first.err;
  EXPECT_EQ(second.code, 1) << second.err;
  EXPECT_THAT(second.err, HasSubstr("another process is writing"));
}

TEST(Folder, ResumeRemovesWhatAKilledRunLeft) {
  TemporaryFolder folder;
  ASSERT_EQ(run_convoy(train_into(folder, {"--epochs", "1"})).code, 0);
  folder.write("out/run.json.123.part", "{");
  folder.write("out/checkpoints/epoch-0002-step-000000.safetensors.123.part", "half");
  const Ran ran = run_convoy({"train", "--resume", (folder / "out").string(), "--epochs", "2"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_FALSE(folder.has_parts());
}

TEST(Folder, ResumePassesOverADamagedCheckpoint) {
  TemporaryFolder folder;
  ASSERT_EQ(run_convoy(train_into(folder, {"--epochs", "2"})).code, 0);
  folder.write("out/checkpoints/epoch-0002-step-000000.safetensors", "damaged");
  const Ran ran = run_convoy({"train", "--resume", (folder / "out").string()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("epoch-0002-step-000000.safetensors"));
  EXPECT_THAT(ran.out, HasSubstr("going on from"));
  EXPECT_THAT(ran.out, HasSubstr("epoch 2, after 0 steps"));
}

// The disk was full before the first checkpoint was whole: there is nothing to resume, so the same
// command must work again.
TEST(Folder, RunThatSavedNothingMayBeRepeated) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "out/checkpoints");
  folder.write("out/checkpoints/epoch-0001-step-000000.state.safetensors", "alone");
  EXPECT_EQ(run_convoy(train_into(folder, {"--epochs", "1"})).code, 0);
}

}  // namespace
}  // namespace convoy
