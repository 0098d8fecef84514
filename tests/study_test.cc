// convoy study on small synthetic data.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "program.h"

namespace convoy {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class StudyCommand : public ::testing::Test {
 protected:
  StudyCommand() { write("1x1,1x2", "epochs = 1\n"); }
  void write(const std::string& rows, const std::string& more) {
    folder_.write("s.toml", "study = \"wang2020\"\nrows = \"" + rows +
                                "\"\nbatch_per_process = 16\nmodel = \"shallow\"\n"
                                "data = \"synthetic:1x28x28:10:96\"\nprecision = \"f32\"\n" +
                                more);
  }
  Ran run(std::vector<std::string> more, const RunOptions& options = {}) {
    more.insert(more.begin(), {"study", file(), "--out", (folder_ / "out").string()});
    return run_convoy(more, options);
  }
  std::string file() const { return (folder_ / "s.toml").string(); }

  TemporaryFolder folder_;
};

TEST_F(StudyCommand, RunsEveryRowOnce) {
  const Ran first = run({"--json"});
  ASSERT_EQ(first.code, 0) << first.err;
  const json answer = first.answer();
  EXPECT_EQ(answer.at("study"), "wang2020");
  ASSERT_EQ(answer.at("rows").size(), 2u);
  const json& row = answer.at("rows").at(1);
  EXPECT_EQ(row.at("row"), "1x2");
  for (const char* figure :
       {"read_s", "gradient_s", "epoch_s", "test_loss", "test_accuracy", "total_s"}) {
    EXPECT_GT(row.at(figure).get<double>(), 0) << figure;
    EXPECT_GT(row.at("published").at(figure).get<double>(), 0) << figure;
  }
  EXPECT_THAT(first.out, AllOf(HasSubstr("1x1 "), HasSubstr("(98.80)"), HasSubstr("(98.43)")));
  EXPECT_THAT(first.err, AllOf(HasSubstr("1x2  row 2 of 2"), HasSubstr("epoch 1/1")));
  EXPECT_FALSE(folder_.has_parts());

  const Ran second = run({"--json"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.answer(), answer);
  EXPECT_THAT(second.err, Not(HasSubstr("epoch 1/1")));

  write("1x1,1x2", "epochs = 1\nseed = 2\n");  // other settings: the rows do not count any more
  const Ran third = run({"--rows", "1x1", "--json"});
  ASSERT_EQ(third.code, 0) << third.err;
  EXPECT_THAT(third.err, HasSubstr("epoch 1/1"));
  EXPECT_EQ(third.answer().at("rows").size(), 1u);
}

TEST_F(StudyCommand, NodesAreNamespacesThatGoAway) {
  const Ran ran = run({"--rows", "2x1", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string hosts = ran.answer().at("rows").at(0).at("hosts");
  EXPECT_EQ(hosts, ::geteuid() == 0 ? "namespaces, 1 Gbit/s" : "processes of this host");
  if (::geteuid() != 0) return;
  const std::string text = run_words({"cat", (folder_ / "out/2x1/hosts").string()}).out;
  const std::size_t at = text.find("convoy-");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string space = text.substr(at, text.find('"', at) - at);
  EXPECT_THAT(run_words({"ip", "netns", "list"}).out, Not(HasSubstr(space)));
}

TEST_F(StudyCommand, IsStoppedByASignalAndLeavesNoNamespace) {
  write("2x1", "epochs = 5000\n");
  pid_t program = 0;
  RunOptions options;
  options.mark = "2x1  epoch";
  options.on_mark = [&](pid_t child) {
    program = child;
    ::kill(child, SIGINT);
  };
  const Ran stopped = run({"--json"}, options);
  EXPECT_EQ(stopped.code, 130);
  EXPECT_THAT(stopped.err, HasSubstr("goes on with the next row"));
  EXPECT_EQ(stopped.out, "");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/2x1.json"));
  if (::geteuid() != 0) return;
  EXPECT_THAT(run_words({"ip", "netns", "list"}).out,
              Not(HasSubstr(fmt::format("convoy-{}-", program))));
  EXPECT_THAT(run_words({"ip", "link", "show"}).out, Not(HasSubstr(fmt::format("cv{}b", program))));
}

TEST_F(StudyCommand, BadInputIsOneLine) {
  const auto refused = [&](const std::vector<std::string>& more, const std::string& word,
                           int code = 2) {
    const Ran ran = run(more);
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_TRUE(ran.one_line()) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(word));
  };
  refused({"--rows", "1by1"}, "--rows: '1by1' is no row");
  write("1x1", "speed = 3\n");
  refused({}, "unknown key 'speed'");
  write("1x1", "optimizer = \"adamm\"\n");
  refused({}, "s.toml:7: optimizer");
  folder_.write("s.toml", "");
  refused({}, "which study");
  const Ran missing = run_convoy({"study", (folder_ / "none.toml").string()});
  EXPECT_EQ(missing.code, 1);
  EXPECT_TRUE(missing.one_line()) << missing.err;
}

TEST_F(StudyCommand, ATrainingThatFailsGivesItsReason) {
  folder_.write("s.toml",
                "study = \"wang2020\"\nrows = \"1x1\"\nmodel = \"shallow\"\n"
                "data = \"mnist\"\ndata_root = \"" +
                    (folder_ / "nowhere").string() + "\"\n");
  const Ran ran = run({});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("convoy: row 1x1: "), HasSubstr("nowhere")));

  write("1x1", "algorithm = \"rings\"\n");
  const Ran refused = run({});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("convoy: row 1x1: unknown algorithm 'rings'"));
}

}  // namespace
}  // namespace convoy
