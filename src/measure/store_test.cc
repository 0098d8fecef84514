#include "measure/store.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "measure/test_store.h"

namespace convoy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string failure(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> names(const std::vector<RunRow>& runs) {
  std::vector<std::string> list;
  for (const RunRow& run : runs) list.push_back(run.name);
  return list;
}

TEST_F(StoreTest, KeepsARunAsItWasEntered) {
  RunRow run = some_run("first");
  run.batch = 128;
  record(run, {});
  Store store(path_, Access::read);
  const RunRow found = store.find("first");
  EXPECT_EQ(found.batch, 128);
  EXPECT_EQ(found.model, "shallow");
  EXPECT_EQ(found.configuration, run.configuration);
  EXPECT_EQ(found.environment, run.environment);
  EXPECT_TRUE(found.result.is_null());
  EXPECT_FALSE(found.test_accuracy);
  EXPECT_EQ(found.sessions, 1);
}

TEST_F(StoreTest, NamesAreUnique) {
  EXPECT_EQ(record(some_run("run"), {}).name, "run");
  EXPECT_EQ(record(some_run("run"), {}).name, "run-2");
  EXPECT_EQ(record(some_run("run"), {}).name, "run-3");
}

TEST_F(StoreTest, FindsByNumberNameBeginningAndLatest) {
  record(some_run("apple-1"), {});
  record(some_run("apple-2"), {});
  RunRow late = some_run("pear");
  late.started_unix_s += 10;
  record(late, {});
  Store store(path_, Access::read);
  EXPECT_EQ(store.find("2").name, "apple-2");
  EXPECT_EQ(store.find("apple-1").name, "apple-1");
  EXPECT_EQ(store.find("pe").name, "pear");
  EXPECT_EQ(store.find("latest").name, "pear");
  EXPECT_THAT(failure([&] { store.find("apple"); }), HasSubstr("several runs: "));
  EXPECT_THAT(failure([&] { store.find("paer"); }), HasSubstr("did you mean pear?"));
  EXPECT_THAT(failure([&] { store.find(""); }), HasSubstr("there is no run ''"));
}

TEST_F(StoreTest, FiltersAndSorts) {
  for (int i = 0; i < 4; ++i) {
    RunRow run = some_run(fmt::format("run{}", i));
    run.started_unix_s += i;
    run.workers = i;
    run.model = i % 2 ? "resnet18" : "shallow";
    record(run, {});
  }
  Store store(path_, Access::read);
  EXPECT_THAT(names(store.list()), ElementsAre("run3", "run2", "run1", "run0"));
  EXPECT_THAT(names(store.list({.model = "resnet18"})), ElementsAre("run3", "run1"));
  EXPECT_THAT(names(store.list({.workers = 2})), ElementsAre("run2"));
  EXPECT_THAT(names(store.list({.name = "n1"})), ElementsAre("run1"));
  EXPECT_THAT(names(store.list({.since_unix_s = 1.7e9 + 2})), ElementsAre("run3", "run2"));
  EXPECT_THAT(names(store.list({.limit = 1})), ElementsAre("run3"));
  // On another host, and heard of a moment ago; then silent for long.
  EXPECT_EQ(store.list({.state = "running"}).size(), 4u);
  Database(path_, Access::write).run("UPDATE runs SET written_unix_s = 1.7e9 WHERE workers > 0");
  EXPECT_EQ(store.list({.state = "lost"}).size(), 3u);
}

TEST_F(StoreTest, DeletesARunFromAllTables) {
  Records records;
  records.steps.push_back({.step = 1, .rank = 0, .epoch = 1});
  records.ledger.push_back({.rank = 0, .epoch = 1, .phase = 0, .seconds = 1});
  records.resources.push_back({.rank = 0, .at_s = 1});
  const auto kept = record(some_run("kept"), records);
  const auto gone = record(some_run("gone"), records);
  Store(path_, Access::write).remove(gone.run);
  for (const char* table : {"runs", "steps", "ledger", "resources"}) EXPECT_EQ(count(table), 1);
  EXPECT_EQ(Store(path_, Access::read).find("kept").id, kept.run);
}

TEST_F(StoreTest, EveryTableIsListed) {
  record(some_run("run"), {});
  Store store(path_, Access::read);
  Statement tables =
      store.database().prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1");
  std::vector<std::string> found, listed = store_tables();
  while (tables.next()) found.push_back(tables.text(0));
  std::sort(listed.begin(), listed.end());
  EXPECT_EQ(found, listed);
  for (const std::string& table : listed) EXPECT_TRUE(store.rows(table, 1).is_array());
}

TEST_F(StoreTest, RefusesAStoreOfANewerVersion) {
  record(some_run("run"), {});
  Database(path_, Access::write).run("PRAGMA user_version = 99");
  for (const Access access : {Access::read, Access::write, Access::create})
    EXPECT_THAT(failure([&] { Store(path_, access); }),
                AllOf(HasSubstr(path_.string()), HasSubstr("version 99"), HasSubstr("--store")));
}

TEST_F(StoreTest, RefusesWhatIsNoStore) {
  EXPECT_THAT(failure([&] { Store(path_, Access::read); }), HasSubstr("there is no run store yet"));
  EXPECT_THAT(failure([&] { Store(folder_, Access::create); }), HasSubstr("a folder"));
  std::ofstream(path_) << std::string(5000, 'x');
  EXPECT_THAT(failure([&] { Store(path_, Access::create); }), HasSubstr("no run store"));
  std::filesystem::remove(path_);
  Database(path_, Access::create).run("CREATE TABLE other (a INTEGER)");
  EXPECT_THAT(failure([&] { Store(path_, Access::create); }), HasSubstr("no run store"));
  EXPECT_THAT(failure([&] { Store("/proc/convoy/x.db", Access::create); }), HasSubstr("/proc"));
}

TEST_F(StoreTest, SaysThatAnotherProcessHasLockedIt) {
  record(some_run("run"), {});
  Store holder(path_, Access::write), other(path_, Access::write);
  const Transaction transaction(holder.database());
  other.database().set_patience_s(0.01);
  EXPECT_THROW(other.remove(1), StoreBusy);
  EXPECT_EQ(Store(path_, Access::read).list().size(), 1u);  // reading goes on
}

TEST_F(StoreTest, TwoProcessesMayMakeTheSameStore) {
  const auto make = [&] { Store(path_, Access::create); };
  std::thread one(make), two(make), three(make);
  one.join();
  two.join();
  three.join();
  EXPECT_TRUE(Store(path_, Access::read).list().empty());
}

// Of HTML, quotes and more: whatever a run is called, it is text.
TEST_F(StoreTest, NamesMayHoldAnything) {
  const std::string name = "<script>alert('x')</script> \"; DROP TABLE runs; -- \xc3\xa4";
  record(some_run(name), {});
  EXPECT_EQ(Store(path_, Access::read).find(name).name, name);
}

}  // namespace
}  // namespace convoy
