#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program.h"

namespace convoy {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Help, EveryCommandShowsAnExample) {
  for (const char* command :
       {"train", "eval", "zoo", "data", "bench", "doctor", "launch", "net", "report", "serve"}) {
    const Ran ran = run_convoy({command, "--help"});
    EXPECT_EQ(ran.code, 0) << command;
    EXPECT_THAT(ran.out, HasSubstr(std::string("convoy ") + command)) << command;
    EXPECT_THAT(ran.out, HasSubstr("xample")) << command;
    EXPECT_EQ(ran.err, "") << command;
  }
}

TEST(Help, ProgramListsItsCommandsAndVersion) {
  EXPECT_THAT(run_convoy({"--help"}).out,
              AllOf(HasSubstr("train"), HasSubstr("doctor"), HasSubstr("Examples:")));
  const Ran version = run_convoy({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, ::testing::StartsWith("convoy "));
}

TEST(Help, MisspeltCommandsAndOptionsAreOneLineWithTheNearest) {
  const Ran command = run_convoy({"trian"});
  EXPECT_EQ(command.code, 2);
  EXPECT_TRUE(command.one_line()) << command.err;
  EXPECT_THAT(command.err, AllOf(HasSubstr("'trian'"), HasSubstr("did you mean train?")));

  const Ran option = run_convoy({"train", "--bacth", "3"});
  EXPECT_EQ(option.code, 2);
  EXPECT_TRUE(option.one_line()) << option.err;
  EXPECT_THAT(option.err, AllOf(HasSubstr("--bacth"), HasSubstr("--batch?")));
}

TEST(Help, NoCommandOrNoValueIsOneLine) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, {"train", "--batch"}, {"eval"}, {"train", "surplus"}}) {
    const Ran ran = run_convoy(arguments);
    EXPECT_EQ(ran.code, 2);
    EXPECT_TRUE(ran.one_line()) << ran.err;
  }
}

TEST(Help, AnAnswerThatCannotBeWrittenIsAFailure) {
  const Ran ran = run_convoy({"--help"}, {.standard_output = "/dev/full"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(ran.one_line()) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("standard output"));
}

}  // namespace
}  // namespace convoy
