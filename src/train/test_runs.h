// Small trainings for tests, each in a folder of its own that is gone at the test's end.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "train/run.h"

namespace convoy {

class SmallRuns : public ::testing::Test {
 protected:
  SmallRuns() {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("convoy-runs-{}-{}", ::getpid(),
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    quiet_ = std::fopen("/dev/null", "w");
  }
  ~SmallRuns() override {
    std::fclose(quiet_);
    std::filesystem::remove_all(folder_);
  }

  // 70 samples in batches of 24: the last one has 22.
  TrainConfig config(const std::string& model) {
    TrainConfig config;
    config.model = model;
    config.data = model == "shallow" ? "synthetic:1x28x28:10:70" : "synthetic:3x32x32:10:70";
    config.batch = 24;
    config.epochs = 2;
    config.lr = 0.02;
    config.precision = "f32";
    config.threads = 1;
    config.checkpoint_every = 0;
    config.out = (folder_ / fmt::format("run{}", runs_++)).string();
    return config;
  }

  static std::string weights(const TrainResult& result) {
    return result.answer.at("weights_sha256");
  }

  std::filesystem::path folder_;
  std::FILE* quiet_ = nullptr;
  InterruptGuard interrupt_;

 private:
  int runs_ = 0;
};

}  // namespace convoy
