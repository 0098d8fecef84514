#include "report/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "report/curves.h"
#include "report/html.h"
#include "report/made_up/made_up_run.h"

namespace convoy {
namespace {

using testing::HasSubstr;
using testing::Not;

// A store of its own for each test, removed with it.
class DocumentTest : public testing::Test {
 protected:
  ~DocumentTest() override {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path_.string() + end);
  }

  RunRow add(const MadeUpRun& run) { return store_.find(std::to_string(add_run(store_, run))); }

  std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) /
      fmt::format("{}-{}.db", testing::UnitTest::GetInstance()->current_test_info()->name(),
                  ::getpid());
  Store store_{path_, Access::create};
};

TEST_F(DocumentTest, StepsOfAllWorkersAreOneRow) {
  const nlohmann::json table = step_columns(store_, add({.workers = 2, .steps = 4}).id, 100);
  EXPECT_EQ(table["step"], nlohmann::json({1, 2, 3, 4}));
  EXPECT_EQ(table["t_s"], nlohmann::json({0, 0.01, 0.02, 0.03}));
  // The mean of 1 / step and 3 / step.
  EXPECT_EQ(table["loss"], nlohmann::json({2, 1, 0.66667, 0.5}));
  EXPECT_EQ(table["accuracy"], nlohmann::json({0.5, 0.5, 0.5, 0.5}));
  // 128 samples in 10 ms.
  EXPECT_EQ(table["images_per_s"], nlohmann::json({12800, 12800, 12800, 12800}));
}

TEST_F(DocumentTest, ManyStepsShareRowsAndKeepTheirExtremes) {
  const nlohmann::json table = step_columns(store_, add({.workers = 1, .steps = 1000}).id, 10);
  ASSERT_EQ(table["step"].size(), 10u);
  EXPECT_EQ(table["step"][0], 100);
  EXPECT_EQ(table["step"][9], 1000);
  EXPECT_EQ(table["loss_max"][0], 1);
  EXPECT_EQ(table["loss_min"][0], 0.01);
  EXPECT_EQ(table["loss_min"][9], 0.001);
  EXPECT_NEAR(table["loss"][0].get<double>(), 0.05187, 1e-4);  // the mean of 1 .. 1/100
}

TEST_F(DocumentTest, ALossThatIsNoNumberIsLeftOut) {
  const RunRow run = add({.workers = 1, .steps = 3});
  store_.database().run("UPDATE steps SET loss = NULL WHERE step = 2");
  EXPECT_EQ(step_columns(store_, run.id, 10)["loss"],
            nlohmann::json({1, nullptr, nlohmann::json(0.33333)}));
}

TEST_F(DocumentTest, ARunInFull) {
  const nlohmann::json document = run_document(store_, add({}));
  EXPECT_EQ(document["name"], "mnist_cnn-mnist-1");
  EXPECT_EQ(document["started"], "2026-01-31T12:00:00Z");
  EXPECT_EQ(document["verdict"], "all is well");
  EXPECT_EQ(document["data_seen"]["seen"], 60000);
  // Worker 0 waits 2 ms of 10, the other never.
  EXPECT_EQ(document["communication_share"], 0.1);
  ASSERT_EQ(document["ranks"].size(), 2u);
  EXPECT_EQ(document["ranks"][0]["wall_s"], 1);
  EXPECT_EQ(document["ranks"][0]["phases_s"],
            nlohmann::json({0.1, 0.2, 0.4, 0, 0.2, 0.1, 0, 0, 0}));
  EXPECT_EQ(document["ranks"][0]["waits"][0],
            nlohmann::json({{"rank", 1}, {"seconds", 0.2}, {"count", 100}, {"layer", "conv2"}}));
  EXPECT_EQ(document["idleness"][0]["share"], nlohmann::json({0.2}));
  EXPECT_EQ(document["layers"][1]["forward_ms"], 2);
  EXPECT_EQ(document["layers"][1]["wait_ms"], 1);  // over the steps of both
  EXPECT_EQ(document["layers"][0]["wait_ms"], nullptr);
  EXPECT_EQ(document["staleness"], nullptr);
  EXPECT_EQ(document["configuration_given"], nlohmann::json({"lr", "model"}));
  EXPECT_EQ(document["weights_sha256"], "00ff");
}

TEST_F(DocumentTest, TheTimelineIsOfATypicalStep) {
  const nlohmann::json timeline = run_document(store_, add({}))["timeline"];
  EXPECT_EQ(timeline["step"], 16);
  EXPECT_EQ(timeline["length_ms"], 9);
  ASSERT_EQ(timeline["spans"].size(), 4u);
  EXPECT_EQ(timeline["spans"][0]["start_ms"], 0);
  EXPECT_EQ(timeline["spans"][0]["name"], "forward conv1");
  EXPECT_EQ(timeline["spans"][3]["bytes"], 4096);
}

TEST_F(DocumentTest, CountersBecomeRates) {
  const nlohmann::json document = run_document(store_, add({.seconds = 3}));
  const nlohmann::json& one = document["resources"][1];
  EXPECT_EQ(one["host"], "node1");
  EXPECT_EQ(one["t_s"], nlohmann::json({1, 2, 3}));
  EXPECT_EQ(one["cpu"], nlohmann::json({0.5, 0.5, 0.5}));
  EXPECT_EQ(one["network_sent_bytes_s"], nlohmann::json({1000000, 1000000, 1000000}));
  EXPECT_EQ(one["memory_bytes"][0], 300000000);
  EXPECT_EQ(document["traffic"][0]["sent_bytes_s"], nlohmann::json({2000000, 2000000, 2000000}));
}

TEST_F(DocumentTest, ACounterThatBeganAnewGivesNoRate) {
  const RunRow run = add({.workers = 1, .seconds = 3});
  store_.database().run("UPDATE resources SET cpu_s = 0.1 WHERE at_s = 2");
  EXPECT_EQ(resource_series(store_, run.id, 100)[0]["cpu"], nlohmann::json({0.5, nullptr, 1.4}));
}

TEST_F(DocumentTest, Staleness) {
  const nlohmann::json staleness = run_document(store_, add({.sync = "async"}))["staleness"];
  EXPECT_EQ(staleness["mean"], nlohmann::json({0.5}));
  EXPECT_EQ(staleness["counts"], nlohmann::json({30, 0, 10}));
}

TEST_F(DocumentTest, AnUnfinishedRunWithoutAnyRows) {
  RunRow run = add({.state = "running"});
  for (const std::string& table : store_tables())
    if (table != "runs") store_.database().run("DELETE FROM " + table);
  store_.database().run(
      "UPDATE runs SET images_per_s = NULL, test_accuracy = NULL, result = NULL, configuration = "
      "'{', verdict = ''");
  const nlohmann::json document = run_document(store_, store_.find("latest"));
  EXPECT_EQ(document["state"], "lost");  // its process is nowhere
  EXPECT_EQ(document["timeline"], nullptr);
  EXPECT_EQ(document["data_seen"], nullptr);
  EXPECT_EQ(document["communication_share"], nullptr);
  EXPECT_TRUE(document["configuration"].empty());
  EXPECT_THAT(html_of(report_document(store_, std::vector{run})), HasSubstr("\"runs\":[{"));
}

TEST_F(DocumentTest, SummariesAreOfAllRunsNewestFirst) {
  add({.name = "a"});
  add({.name = "b", .workers = 1});
  const std::vector<nlohmann::json> list = run_summaries(store_);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["name"], "b");
  EXPECT_EQ(list[0]["communication_share"], 0.2);  // its one worker's waits
  EXPECT_EQ(list[1]["epochs_done"], 1);
}

TEST_F(DocumentTest, NoTextOfARunBecomesMarkup) {
  const RunRow run = add({.name = "</script><script>alert(1)</script>"});
  const std::string html = html_of(report_document(store_, std::vector{run}));
  EXPECT_THAT(html, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(html, Not(HasSubstr("it <b>happened")));
  EXPECT_THAT(html, HasSubstr(R"(\u003c/script>\u003cscript>alert(1))"));
}

TEST_F(DocumentTest, TextThatIsNotUtf8StaysReadable) {
  const RunRow run = add({.name = "caf\xe9"});
  EXPECT_THAT(html_of(report_document(store_, std::vector{run})), HasSubstr("caf\xEF\xBF\xBD"));
}

TEST_F(DocumentTest, AReportStaysSmall) {
  std::vector<RunRow> runs;
  for (int i = 0; i < 40; ++i)
    runs.push_back(add({.name = std::to_string(1000 + i), .steps = 600, .seconds = 60}));
  const std::string html = report_html(store_, runs);
  EXPECT_LT(html.size(), kMaxReportBytes);
  EXPECT_GT(html.size(), kMaxReportBytes / 8);
}

}  // namespace
}  // namespace convoy
