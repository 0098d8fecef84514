#include "kernels/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace convoy {
namespace {

namespace fs = std::filesystem;

class TunerFile : public ::testing::Test {
 protected:
  TunerFile() {
    std::string name = (fs::temp_directory_path() / "tuner.XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    file_ = folder_ / "cache" / "tuner.json";
  }
  ~TunerFile() override { fs::remove_all(folder_); }

  // Times of two ways to do it; how often they were asked for is counted.
  std::string choose(Tuner& tuner, const std::string& key, double plain_s, double clever_s) {
    const Tuner::Candidate candidates[] = {{"plain", [&] { return ++timed_, plain_s; }},
                                           {"clever", [&] { return ++timed_, clever_s; }}};
    return tuner.choose(key, candidates);
  }

  fs::path folder_, file_;
  std::atomic<int> timed_ = 0;
};

TEST_F(TunerFile, TheFasterIsTakenAndRemembered) {
  Tuner tuner(file_, "machine");
  EXPECT_EQ(choose(tuner, "a", 2, 1), "clever");
  EXPECT_EQ(choose(tuner, "b", 1, 2), "plain");
  EXPECT_EQ(choose(tuner, "c", 1, 0.95), "plain") << "a later one must win by a tenth";
  timed_ = 0;
  Tuner next(file_, "machine");
  EXPECT_EQ(choose(next, "a", 1, 2), "clever");
  EXPECT_EQ(next.recall("b", "clever"), "plain");
  EXPECT_EQ(next.recall("unknown", "clever"), "clever");
  EXPECT_EQ(timed_, 0);
  Tuner other(file_, "another machine");
  EXPECT_EQ(choose(other, "a", 1, 2), "plain");
}

TEST_F(TunerFile, WhoWritesFirstDecidesForAll) {
  Tuner one(file_, "machine"), other(file_, "machine");
  EXPECT_EQ(choose(one, "a", 2, 1), "clever");
  EXPECT_EQ(choose(other, "a", 1, 2), "clever");
  EXPECT_EQ(other.recall("a", "plain"), "clever");
  EXPECT_EQ(choose(other, "b", 1, 2), "plain");
  EXPECT_EQ(choose(one, "b", 2, 1), "plain");
  Tuner later(file_, "machine");
  EXPECT_EQ(later.recall("a", "plain"), "clever");
  EXPECT_EQ(later.recall("b", "clever"), "plain");
}

TEST_F(TunerFile, ManyAtOnceAgree) {
  constexpr int kTuners = 8, kKeys = 20;
  std::latch all_opened(kTuners);
  std::vector<std::vector<std::string>> chosen(kTuners);
  std::vector<std::thread> threads;
  for (int i = 0; i < kTuners; ++i)
    threads.emplace_back([&, i] {
      Tuner tuner(file_, "machine");
      all_opened.arrive_and_wait();
      for (int key = 0; key < kKeys; ++key)
        chosen[i].push_back(choose(tuner, std::to_string(key), 1 + i % 2, 2 - i % 2));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(chosen, ::testing::Each(chosen[0]));
  Tuner later(file_, "machine");
  for (int key = 0; key < kKeys; ++key)
    EXPECT_EQ(later.recall(std::to_string(key), "none"), chosen[0][key]);
}

TEST_F(TunerFile, WhatCannotBeReadOrIsUnknownIsStartedAnew) {
  fs::create_directory(file_.parent_path());
  for (const char* text : {"", "{", "[1]", R"({"machine": 3})", R"({"machine": {"a": 1}})",
                           R"({"machine": {"a": "of another version"}})"}) {
    std::ofstream(file_) << text;
    Tuner tuner(file_, "machine");
    EXPECT_EQ(choose(tuner, "a", 2, 1), "clever") << text;
    EXPECT_EQ(Tuner(file_, "machine").recall("a", "plain"), "clever") << text;
  }
}

TEST_F(TunerFile, WhatCannotBeReadOrWrittenIsDoneWithout) {
  const auto a_file = [&] { std::ofstream(folder_ / "cache") << "a file"; };
  const auto a_folder = [&] { fs::create_directories(file_); };
  const auto a_pipe = [&] {
    fs::create_directory(file_.parent_path());
    ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  };
  for (const std::function<void()>& make : {std::function<void()>(a_file), {a_folder}, {a_pipe}}) {
    fs::remove_all(folder_ / "cache");
    make();
    Tuner tuner(file_, "machine");
    EXPECT_EQ(choose(tuner, "a", 2, 1), "clever");
    timed_ = 0;
    EXPECT_EQ(choose(tuner, "a", 1, 2), "clever");
    EXPECT_EQ(timed_, 0);
  }
}

}  // namespace
}  // namespace convoy
