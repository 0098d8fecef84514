// Puts what the ranks of this process note into the run store: a thread of its own writes once a
// second, in one transaction, so that ranks never wait for a disk. One for each process of a run,
// shared by all ranks that live there. All functions may be called from any task, but for begin(),
// join() and end(), which come first and last.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "measure/records.h"
#include "measure/store.h"

namespace convoy {

class RecordStatements;

class StoreWriter {
 public:
  StoreWriter();
  ~StoreWriter();  // writes what is left
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;

  // Where a run that goes on stands: what was recorded beyond is forgotten, for it happens again.
  struct Position {
    std::int64_t step = 0;
    int epochs = 0;
  };
  struct Begun {
    std::int64_t run = 0;
    std::string name;   // unique in the store
    double wall_s = 0;  // recorded in earlier sessions
  };
  // The leading worker's: opens or makes the store and enters the run. With `resumed`, goes on with
  // the newest run of the same folder, if the store has it. Throws DataError.
  Begun begin(const std::filesystem::path& store, const RunRow& run, const Position* resumed);
  // The others': true where this process can write to the leader's store, because it has the same
  // file (`identity`), or has it open already.
  bool join(const std::filesystem::path& store, const std::string& identity, std::int64_t run);
  bool recording() const { return run_ != 0; }
  std::int64_t run() const { return run_; }
  // Calls it once a second, before writing, on the writer's thread.
  void every_second(std::function<void(Records&)> sample);

  void add(Records&& records);
  // Done in the next transaction.
  void later(std::function<void(Database&)> change);
  // Writes at once what is there, and waits for it. False where that failed: it is kept.
  bool flush();
  double cpu_s() const { return cpu_s_; }  // that its thread has used
  // How long to wait for other processes that write; 2 at first.
  void set_patience_s(double seconds);
  // Writes all that is left and stops. False where something could not be written.
  bool end();

 private:
  void open(const std::filesystem::path& store, Access access);
  void start(std::int64_t run);
  void work();
  bool write();

  std::unique_ptr<Store> store_;
  std::unique_ptr<RecordStatements> statements_;
  std::atomic<std::int64_t> run_{0};
  std::atomic<double> cpu_s_{0};
  std::mutex writing_;  // held while the database is used
  std::mutex mutex_;    // guards what follows
  std::condition_variable wake_;
  Records pending_;
  std::vector<std::function<void(Database&)>> changes_;
  std::function<void(Records&)> sample_;
  bool ending_ = false;
  bool complained_ = false;  // the writing task's
  std::thread thread_;
};

// The same text for the same file seen by two processes of one machine, and else another.
std::string file_identity(const std::filesystem::path& path);

}  // namespace convoy
