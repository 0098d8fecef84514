#include "lab/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kSmall = R"(study = "wang2020"
rows = "1x1, 2x4"
batch_per_process = 64
gbit_per_s = 2.5
model = "mnist_cnn"
data = "mnist"
base_batch = 64
)";

std::string error_of(const std::string& text) {
  try {
    read_study(text, "s.toml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Study, ReadsItsOwnKeysAndThoseOfTheTraining) {
  const Study study = read_study(kSmall, "s.toml");
  EXPECT_EQ(study.name, "wang2020");
  EXPECT_THAT(study.rows, ElementsAre(StudyRow{1, 1}, StudyRow{2, 4}));
  EXPECT_EQ(study.gbit_per_s, 2.5);
  EXPECT_EQ(study.training.model, "mnist_cnn");
  EXPECT_EQ(study.training.base_batch, 64);
}

TEST(Study, ARowMultipliesTheBatchAndSharesTheCores) {
  const Study study = read_study(kSmall, "s.toml");
  const TrainConfig config = row_config(study, {.nodes = 2, .processes = 2}, 8);
  EXPECT_EQ(config.workers, 4);
  EXPECT_EQ(config.batch, 256);
  EXPECT_EQ(config.threads, 2);
  EXPECT_EQ(row_config(study, {.nodes = 2, .processes = 4}, 2).threads, 1);
  const Study fixed = read_study(kSmall + "threads = 3\n", "s.toml");
  EXPECT_EQ(row_config(fixed, {.nodes = 2, .processes = 4}, 2).threads, 3);
}

TEST(Study, ATrialIsOneShortEpoch) {
  const Study study = quick_study(read_study(kSmall + "warmup_epochs = 1\n", "s.toml"));
  EXPECT_EQ(study.training.epochs, 1);
  EXPECT_EQ(study.training.warmup_epochs, 0);
  EXPECT_EQ(study.training.limit, 6000);
  EXPECT_EQ(quick_study(read_study(kSmall + "limit = 100\n", "s.toml")).training.limit, 100);
}

TEST(Study, RefusesWhatIsNoRow) {
  for (const char* text : {"", "1", "1x", "x2", "0x1", "1x0", "-1x2", "1x2x3", "1x1,", "1x1,,2x2",
                           "a", "1 x 2", "99999999999x1"})
    EXPECT_THROW(parse_rows(text, "--rows"), ConfigError) << text;
  for (const char* text : {"65x1", "1x1025", "64x64", "1x1,2x2,1x1"})
    EXPECT_THROW(parse_rows(text, "--rows"), ConfigError) << text;
  EXPECT_THAT(parse_rows("4x2", "--rows"), ElementsAre(StudyRow{4, 2}));
}

TEST(Study, BadFilesAreNamedWithLineAndKey) {
  EXPECT_THAT(error_of(kSmall + "epocs = 3\n"),
              AllOf(StartsWith("s.toml:8: "), HasSubstr("'epocs'"), HasSubstr("epochs")));
  EXPECT_THAT(error_of(kSmall + "row = 3\n"), HasSubstr("did you mean rows"));
  EXPECT_THAT(error_of(kSmall + "batch = 3\n"), HasSubstr("s.toml:8: batch follows from the rows"));
  EXPECT_THAT(error_of(kSmall + "epochs = -3\n"), HasSubstr("s.toml:8: epochs"));
  EXPECT_THAT(error_of("study = 3\n"), HasSubstr("s.toml:1: study must be a text"));
  EXPECT_THAT(error_of("study = \"wang2021\"\nrows = \"1x1\"\n"), HasSubstr("known is wang2020"));
  EXPECT_THAT(error_of("rows = \"1x1\"\n"), HasSubstr("which study"));
  EXPECT_THAT(error_of("study = \"wang2020\"\n"), HasSubstr("no rows"));
  EXPECT_THAT(error_of("study = \"wang2020\"\nrows = \"2by2\"\n"),
              HasSubstr("s.toml:2: rows: '2by2' is no row"));
  EXPECT_THAT(error_of("batch_per_process = 0\n"), HasSubstr("s.toml:1: batch_per_process"));
  EXPECT_THAT(error_of("gbit_per_s = \"fast\"\n"), HasSubstr("s.toml:1: gbit_per_s"));
  EXPECT_THAT(error_of("study = \"wang2020\"\nrows = \"1x1\"\ndata = \"mnist\"\n"),
              HasSubstr("--model"));
}

}  // namespace
}  // namespace convoy
