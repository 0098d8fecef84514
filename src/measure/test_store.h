// A store of its own for each test, gone at its end.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "measure/store_writer.h"

namespace convoy {

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("convoy-store-{}-{}", ::getpid(),
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "convoy.db";
  }
  ~StoreTest() override { std::filesystem::remove_all(folder_); }

  static RunRow some_run(const std::string& name) {
    RunRow run;
    run.name = name;
    run.started_unix_s = run.written_unix_s = 1.7e9;
    run.folder = "/runs/" + name;
    run.host = "elsewhere";
    run.model = "shallow";
    run.data = "mnist";
    run.workers = 2;
    run.configuration = {{"model", "shallow"}, {"seed", 1}};
    run.environment = {{"commit", "abc"}};
    return run;
  }
  // Enters a run, adds the records, and ends.
  StoreWriter::Begun record(const RunRow& run, Records records,
                            const StoreWriter::Position* resumed = nullptr) {
    StoreWriter writer;
    const StoreWriter::Begun begun = writer.begin(path_, run, resumed);
    writer.add(std::move(records));
    EXPECT_TRUE(writer.end());
    return begun;
  }
  std::int64_t count(const std::string& table) {
    Store store(path_, Access::read);
    Statement rows = store.database().prepare("SELECT count(*) FROM " + table);
    rows.next();
    return rows.integer(0);
  }

  std::filesystem::path folder_, path_;
};

}  // namespace convoy
