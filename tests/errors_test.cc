// Bad input: one clear line, the right exit code, nothing half-written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "program.h"

namespace convoy {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kData = "synthetic:1x28x28:10:128";

std::vector<std::string> train(const TemporaryFolder& folder,
                               const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"train", "--out", (folder / "out").string(), "--epochs",
                                        "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void expect_refused(const Ran& ran, int code, const std::vector<std::string>& words) {
  EXPECT_EQ(ran.code, code) << ran.err;
  EXPECT_TRUE(ran.one_line()) << ran.err;
  for (const std::string& word : words) EXPECT_THAT(ran.err, HasSubstr(word));
  EXPECT_EQ(ran.out, "");
}

std::string trained_checkpoint(const TemporaryFolder& folder) {
  return run_convoy(train(folder, {"--model", "shallow", "--data", kData, "--json"}))
      .answer()
      .at("checkpoint");
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Errors, BatchMustBeAPositiveNumber) {
  TemporaryFolder folder;
  for (const char* batch : {"0", "-1", "abc", "1e9", "1.5", ""})
    expect_refused(
        run_convoy(train(folder, {"--model", "shallow", "--data", kData, "--batch", batch})), 2,
        {"--batch must be a whole number from 1"});
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST(Errors, RatesMustBeNumbers) {
  TemporaryFolder folder;
  for (const char* rate : {"nan", "-0.5", "fast", "inf"})
    expect_refused(run_convoy(train(folder, {"--model", "shallow", "--data", kData, "--lr", rate})),
                   2, {"--lr", rate});
}

TEST(Errors, UnknownModelNamesTheNearest) {
  TemporaryFolder folder;
  expect_refused(run_convoy(train(folder, {"--model", "resnet81", "--data", kData})), 2,
                 {"resnet81", "resnet18"});
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST(Errors, MissingDataSaysHowToGetIt) {
  TemporaryFolder folder;
  expect_refused(run_convoy(train(folder, {"--model", "shallow", "--data", "mnist", "--data-root",
                                           (folder / "none").string()})),
                 1, {"convoy data get mnist"});
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST(Errors, ConfigurationFileNamesFileKeyAndNearest) {
  TemporaryFolder folder;
  folder.write("run.toml", "model = \"shallow\"\nbacth = 3\n");
  expect_refused(run_convoy({"train", "--config", (folder / "run.toml").string()}), 2,
                 {"run.toml:2", "bacth", "batch?"});
  folder.write("run.toml", "model = \"shallow\"\nbatch = \"many\"\n");
  expect_refused(run_convoy({"train", "--config", (folder / "run.toml").string()}), 2,
                 {"run.toml:2: batch", "'many'"});
  folder.write("run.toml", "model = [\n");
  expect_refused(run_convoy({"train", "--config", (folder / "run.toml").string()}), 2,
                 {"run.toml:"});
  expect_refused(run_convoy({"train", "--config", (folder / "none.toml").string()}), 1,
                 {"none.toml"});
}

TEST(Errors, CheckpointOfAnotherNetwork) {
  TemporaryFolder folder, other;
  const std::string checkpoint = trained_checkpoint(folder);
  expect_refused(
      run_convoy({"eval", checkpoint, "--data", "synthetic:3x32x32:10:64", "--model", "resnet18"}),
      1, {checkpoint});
  expect_refused(run_convoy(train(other, {"--model", "resnet18", "--data",
                                          "synthetic:3x32x32:10:64", "--init", checkpoint})),
                 1, {checkpoint});
  EXPECT_FALSE(other.has_parts());
}

TEST(Errors, TruncatedOrForeignCheckpoint) {
  TemporaryFolder folder;
  const std::string bytes = contents(trained_checkpoint(folder));
  for (std::size_t size :
       {std::size_t{0}, std::size_t{7}, std::size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
    folder.write("cut.safetensors", bytes.substr(0, size));
    expect_refused(run_convoy({"eval", (folder / "cut.safetensors").string(), "--data", kData,
                               "--model", "shallow"}),
                   1, {"cut.safetensors"});
  }
  folder.write("huge.safetensors", std::string(8, '\x7f') + "{}");
  expect_refused(run_convoy({"eval", (folder / "huge.safetensors").string(), "--data", kData,
                             "--model", "shallow"}),
                 1, {"huge.safetensors"});
  expect_refused(run_convoy({"eval", (folder / "none.safetensors").string(), "--data", kData}), 1,
                 {"none.safetensors"});
}

TEST(Errors, FolderThatCannotBeWritten) {
  TemporaryFolder folder;
  folder.write("file", "not a folder");
  expect_refused(run_convoy({"train", "--model", "shallow", "--data", kData, "--out",
                             (folder / "file/out").string()}),
                 1, {"file/out"});
  expect_refused(
      run_convoy({"train", "--model", "shallow", "--data", kData, "--out", "/proc/convoy"}), 1,
      {"/proc/convoy"});
}

// A file size limit fails writes as a full disk does, for root too.
TEST(Errors, FullDiskLeavesNothingHalfWritten) {
  TemporaryFolder folder;
  const Ran ran =
      run_convoy(train(folder, {"--model", "shallow", "--data", kData, "--store", "none"}),
                 {.file_limit_bytes = 100'000});
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("cannot write"));
  EXPECT_FALSE(folder.has_parts());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    EXPECT_NE(entry.path().extension(), ".safetensors") << entry.path();
}

// The weights fit, the store's log of 12,000 steps does not.
TEST(Errors, SlowRunWhoseStoreIsFullEndsAndSaysSo) {
  TemporaryFolder folder;
  const Ran ran =
      run_convoy(train(folder, {"--model", "shallow", "--data", "synthetic:1x16x16:10:12000",
                                "--batch", "1", "--store", (folder / "runs.db").string()}),
                 {.file_limit_bytes = 700'000});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("runs.db"));
  EXPECT_THAT(ran.out, HasSubstr("not all of it"));
}

TEST(Errors, FolderInUseByAnotherRunIsNotOverwritten) {
  TemporaryFolder folder;
  trained_checkpoint(folder);
  expect_refused(run_convoy(train(folder, {"--model", "shallow", "--data", kData})), 2,
                 {"--resume"});
}

TEST(Errors, FlagGivenTwice) {
  TemporaryFolder folder;
  expect_refused(
      run_convoy(train(folder, {"--model", "shallow", "--data", kData, "--epochs", "2"})), 2,
      {"--epochs is given 2 times"});
}

TEST(Errors, SwitchesTakeNoValue) {
  TemporaryFolder folder;
  expect_refused(
      run_convoy(train(folder, {"--model", "shallow", "--data", kData, "--nesterov=maybe"})), 2,
      {"nesterov"});
}

TEST(Errors, LossThatIsNoNumberAfterTheLastStep) {
  TemporaryFolder folder;
  // One step, from sound weights to ones whose products overflow.
  const Ran ran = run_convoy(
      train(folder, {"--model", "shallow", "--data", kData, "--batch", "128", "--lr", "1e6",
                     "--base-batch", "1", "--weight-decay", "1000", "--schedule", "constant"}));
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_THAT(ran.err,
              AllOf(HasSubstr("not a finite number in epoch 1, evaluation"), HasSubstr("--lr")));
  EXPECT_FALSE(std::filesystem::exists(folder / "out/final.safetensors"));
}

TEST(Errors, DamagedDataNamesTheRemedyForItsRoot) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "mnist");
  folder.write("mnist/train-images-idx3-ubyte", "short");
  folder.write("mnist/train-labels-idx1-ubyte", "short");
  const std::string root = folder.path().string();
  expect_refused(
      run_convoy(train(folder, {"--model", "shallow", "--data", "mnist", "--data-root", root})), 1,
      {"truncated", "; run: convoy data get mnist --root " + root + "\n"});
}

TEST(Errors, StateTakenForWeights) {
  TemporaryFolder folder;
  trained_checkpoint(folder);
  const std::string state =
      (folder / "out/checkpoints/epoch-0001-step-000000.state.safetensors").string();
  expect_refused(run_convoy({"train", "--resume", state}), 1, {state, "without '.state'"});
  expect_refused(run_convoy({"eval", state, "--data", kData}), 1, {state, "without '.state'"});
}

TEST(Errors, EvalSaysWhereTheShapeComesFrom) {
  TemporaryFolder folder;
  const std::string checkpoint = trained_checkpoint(folder);
  expect_refused(run_convoy({"eval", checkpoint, "--data", "synthetic:1x32x32:10:64"}), 2,
                 {"--input 1x28x28", checkpoint});
}

TEST(Errors, ConfigurationWithoutEnd) {
  expect_refused(run_convoy({"train", "--config", "/dev/zero"}), 1, {"/dev/zero: more than"});
}

TEST(Errors, InputAndClassesMustFitTheData) {
  TemporaryFolder folder;
  expect_refused(
      run_convoy(train(folder, {"--model", "shallow", "--data", kData, "--classes", "3"})), 2,
      {"--classes"});
  expect_refused(
      run_convoy(train(folder, {"--model", "shallow", "--data", kData, "--input", "3x32x32"})), 2,
      {"--input"});
}

}  // namespace
}  // namespace convoy
