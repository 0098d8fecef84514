#include "measure/store_writer.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "base/clock.h"
#include "measure/statements.h"

namespace convoy {
namespace {

constexpr auto kPeriod = std::chrono::seconds(1);
constexpr double kPatience_s = 2;
// Beyond this, whoever adds writes: a simulation makes records faster than a disk takes them.
constexpr std::size_t kMostPending = 200'000;
// While a store cannot be written, older records are kept up to this number.
constexpr std::size_t kMostKept = 2'000'000;

}  // namespace

std::string file_identity(const std::filesystem::path& path) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return "";
  return fmt::format("{}:{}:{}", boot, status.st_dev, status.st_ino);
}

StoreWriter::StoreWriter() = default;

StoreWriter::~StoreWriter() { end(); }

void StoreWriter::open(const std::filesystem::path& store, Access access) {
  store_ = std::make_unique<Store>(store, access);
  store_->database().set_patience_s(kPatience_s);
}

void StoreWriter::start(std::int64_t run) {
  statements_ = std::make_unique<RecordStatements>(store_->database());
  run_ = run;
  thread_ = std::thread([this] { work(); });
}

StoreWriter::Begun StoreWriter::begin(const std::filesystem::path& store, const RunRow& run,
                                      const Position* resumed) {
  open(store, Access::create);
  Database& database = store_->database();
  Transaction transaction(database);
  Begun begun{.run = 0, .name = run.name, .wall_s = 0};
  if (resumed) {
    Statement before = database.prepare(
        "SELECT id, name, wall_s FROM runs WHERE folder = ?1 ORDER BY id DESC LIMIT 1");
    before.bind(run.folder);
    if (before.next()) begun = {before.integer(0), before.text(1), before.real(2)};
  }
  if (begun.run == 0) {
    begun.name = free_name(database, run.name);
    begun.run = insert_run(database, run, begun.name);
  } else {
    forget_after(database, begun.run, resumed->step, resumed->epochs);
    reopen_run(database, begun.run, run);
  }
  transaction.commit();
  start(begun.run);
  return begun;
}

bool StoreWriter::join(const std::filesystem::path& store, const std::string& identity,
                       std::int64_t run) {
  const std::lock_guard lock(writing_);
  if (recording()) return true;
  if (identity.empty() || file_identity(store) != identity) return false;
  try {
    open(store, Access::write);
  } catch (const DataError&) {  // then the leader writes for it
    return false;
  }
  start(run);
  return true;
}

void StoreWriter::every_second(std::function<void(Records&)> sample) {
  const std::lock_guard lock(mutex_);
  sample_ = std::move(sample);
}

void StoreWriter::add(Records&& records) {
  bool many = false;
  {
    const std::lock_guard lock(mutex_);
    pending_.append(std::move(records));
    many = pending_.count() > kMostPending;
  }
  if (many) flush();
}

void StoreWriter::later(std::function<void(Database&)> change) {
  const std::lock_guard lock(mutex_);
  changes_.push_back(std::move(change));
}

bool StoreWriter::flush() {
  const std::lock_guard lock(writing_);
  return !recording() || write();
}

void StoreWriter::set_patience_s(double seconds) {
  const std::lock_guard lock(writing_);
  if (store_) store_->database().set_patience_s(seconds);
}

bool StoreWriter::end() {
  if (!thread_.joinable()) return true;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
  const bool written = flush();
  statements_.reset();
  store_.reset();
  run_ = 0;
  return written;
}

void StoreWriter::work() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kPeriod, [this] { return ending_; })) {
    if (sample_) sample_(pending_);
    lock.unlock();
    flush();
    timespec used = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    cpu_s_ = double(used.tv_sec) + 1e-9 * double(used.tv_nsec);
    lock.lock();
  }
}

// What could not be written is put back, to be tried again.
bool StoreWriter::write() {
  Records records;
  std::vector<std::function<void(Database&)>> changes;
  {
    const std::lock_guard lock(mutex_);
    std::swap(records, pending_);
    std::swap(changes, changes_);
  }
  Database& database = store_->database();
  try {
    Transaction transaction(database);
    for (const auto& change : changes) change(database);  // first: records belong to ranks
    statements_->write(run_, records);
    database.prepare("UPDATE runs SET written_unix_s = ?2 WHERE id = ?1")
        .bind(run_.load(), unix_time_s())
        .run();
    transaction.commit();
    complained_ = false;
    return true;
  } catch (const DataError& error) {
    if (!std::exchange(complained_, true)) spdlog::warn("recording: {}", error.what());
    const std::lock_guard lock(mutex_);
    if (records.count() < kMostKept) {
      records.append(std::move(pending_));
      std::swap(pending_, records);
    }
    changes.insert(changes.end(), changes_.begin(), changes_.end());
    std::swap(changes_, changes);
    return false;
  }
}

}  // namespace convoy
