#include "measure/trace.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "measure/test_store.h"

namespace convoy {
namespace {

using nlohmann::json;

// What the trace event format asks of a document, as far as we use it.
void expect_valid(const json& trace) {
  ASSERT_TRUE(trace.at("traceEvents").is_array());
  std::map<std::pair<json, json>, std::vector<std::pair<double, double>>> slices;  // by thread
  std::map<json, std::pair<int, int>> flows;  // by id: starts and ends
  std::set<std::string> named;
  for (const json& event : trace.at("traceEvents")) {
    const std::string kind = event.at("ph");
    EXPECT_TRUE(event.at("pid").is_number_integer());
    EXPECT_TRUE(event.at("tid").is_number_integer());
    EXPECT_FALSE(event.at("name").get<std::string>().empty());
    if (kind == "M") {
      EXPECT_TRUE(event.at("args").at("name").is_string());
      named.insert(event.at("name"));
      continue;
    }
    EXPECT_GE(event.at("ts").get<double>(), 0);
    if (kind == "X") {
      EXPECT_GE(event.at("dur").get<double>(), 0);
      slices[{event["pid"], event["tid"]}].push_back(
          {event["ts"], event["ts"].get<double>() + event["dur"].get<double>()});
    } else {
      ASSERT_TRUE(kind == "s" || kind == "f") << kind;
      (kind == "s" ? flows[event.at("id")].first : flows[event.at("id")].second) += 1;
      if (kind == "f") {
        EXPECT_EQ(event.at("bp"), "e");
      }
    }
  }
  EXPECT_EQ(named, (std::set<std::string>{"process_name", "thread_name"}));
  for (const auto& [id, ends] : flows) EXPECT_EQ(ends, std::pair(1, 1)) << "flow " << id;
  // An arrow's ends lie in slices of their threads.
  for (const json& event : trace.at("traceEvents")) {
    if (event["ph"] != "s" && event["ph"] != "f") continue;
    const double at = event["ts"];
    const auto& own = slices[{event["pid"], event["tid"]}];
    EXPECT_TRUE(std::any_of(own.begin(), own.end(), [&](const auto& slice) {
      return slice.first - 1e-6 <= at && at <= slice.second + 1e-6;
    })) << event;
  }
}

SpanRecord span(int rank, int number, Lane lane, std::int64_t begin_ns, std::int64_t end_ns,
                std::int64_t operation = -1) {
  return {.step = 2,
          .begin_ns = begin_ns,
          .end_ns = end_ns,
          .operation = operation,
          .bytes = operation < 0 ? -1 : 1000,
          .rank = rank,
          .number = number,
          .lane = lane,
          .phase = std::int32_t(Phase::forward),
          .node = -1};
}

const char* const kRanks =
    "INSERT INTO ranks (run, rank, role, host, pid, threads) VALUES (1, 0, 'worker', 'a', 1, 1), "
    "(1, "
    "1, 'worker', 'b<c>', 1, 1), (1, 2, 'worker', 'c', 1, 1)";

TEST_F(StoreTest, TraceHasSlicesAndArrowsFromWhoCameLast) {
  Records records;
  for (int rank = 0; rank < 3; ++rank) {
    records.spans.push_back(span(rank, 0, Lane::compute, 0, 1000 + 100 * rank));
    records.spans.push_back(span(rank, 1, Lane::communication, 1000 + 100 * rank, 2000, 5));
  }
  StoreWriter writer;
  writer.begin(path_, some_run("run"), nullptr);
  writer.later([](Database& database) { database.run(kRanks); });
  writer.add(std::move(records));
  ASSERT_TRUE(writer.end());
  Store store(path_, Access::read);
  const json trace = json::parse(trace_text(store, store.find("run")));
  expect_valid(trace);
  int arrows = 0;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "s") {
      ++arrows;
      EXPECT_EQ(event["pid"], 2);
    }
  EXPECT_EQ(arrows, 2);
}

TEST_F(StoreTest, TraceStaysBelowItsBoundSlow) {
  StoreWriter writer;
  writer.begin(path_, some_run("run"), nullptr);
  writer.later([](Database& database) { database.run(kRanks); });
  Records records;
  for (int i = 0; i < 150'000; ++i)
    records.spans.push_back(
        span(i % 3, i / 3, Lane::communication, i * 1000, i * 1000 + 900, i / 3));
  writer.add(std::move(records));
  ASSERT_TRUE(writer.end());
  Store store(path_, Access::read);
  const std::string text = trace_text(store, store.find("run"));
  EXPECT_LT(text.size(), kMostTraceBytes);
  EXPECT_GT(text.size(), kMostTraceBytes * 9 / 10);
  EXPECT_FALSE(json::parse(text).at("otherData").at("whole").get<bool>());
}

TEST_F(StoreTest, NoTraceWithoutDetails) {
  record(some_run("run"), {});
  Store store(path_, Access::read);
  EXPECT_THROW(trace_text(store, store.find("run")), DataError);
}

}  // namespace
}  // namespace convoy
