// Hands out the work of a run, batch by batch, to workers that are not in step. A part of a batch
// is leased to a worker, who says when it is done; those of a worker that is lost are leased again,
// so that an epoch sees every sample. When all parts are done, all workers come together: they take
// the mean of their running statistics, evaluate (test batches are leased the same way), and worker
// 0, which leads, tells people and saves before the next epoch begins.
//
// It sends nothing itself: the leader takes answers and orders from it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sync/ps/guard.h"
#include "sync/ps/job.h"
#include "sync/ps/message.h"

namespace convoy {

class Coordinator {
 public:
  explicit Coordinator(const ServerJob& job);

  // `buffers` come with Ask::arrive.
  void ask(int worker, const Ask& ask, std::vector<float> buffers = {});
  void lost(int worker, const std::string& why);                      // not of worker 0
  void note(std::string line) { notes_.push_back(std::move(line)); }  // for people

  // By worker; taken once.
  std::vector<std::pair<int, Answer>> take_answers() { return std::exchange(answers_, {}); }
  std::vector<Order> take_orders() { return std::exchange(orders_, {}); }
  // What each worker has measured, as JSON, when it last arrived; empty: it never did.
  const std::vector<std::string>& figures() const { return figures_; }
  // The mean of all workers' buffers, for those who are answered Answer::merged.
  std::span<const float> merged() const { return merged_; }

 private:
  enum class Phase { train, evaluate, told, over };
  enum class Part : std::uint8_t { open, leased, done };
  struct Lease {
    int worker;
    std::int64_t number;  // part of the epoch, or test batch
    bool test;
    bool done = false;
  };

  void begin_epoch();
  void take_result(int worker, const Ask& ask);
  std::optional<std::int64_t> next_part(int worker) const;
  void answer(int worker, Answer::Kind kind, std::string_view text = {});
  void lease(int worker, std::int64_t number, bool test);
  void settle();  // answers whoever can be
  bool settle_worker(int worker);
  void come_together();
  void end_epoch();
  void fail(const std::string& why);
  std::string take_note();
  void watch(double loss);
  bool all_done(const std::vector<Part>& parts) const;
  bool everybody(Ask::Kind kind) const;

  const ServerJob job_;
  const CourseOptions course_;
  bool fixed_parts_;
  Phase phase_ = Phase::train;
  int epoch_ = 0;
  int first_step_ = 0;
  int last_step_ = 0;  // parts of later steps are not leased
  bool stopping_ = false;
  bool evaluates_ = false;
  bool merges_ = false;  // answers bring merged buffers
  std::vector<Part> parts_, tests_;
  std::vector<Lease> leases_;  // of this epoch, by number
  std::int64_t lease_base_ = 0;
  std::vector<char> alive_;
  std::vector<std::optional<Ask>> waiting_;  // by worker
  std::vector<char> rested_;                 // by worker: has come to rest in this epoch
  std::vector<std::vector<float>> buffers_;
  std::vector<float> merged_;
  std::vector<std::string> figures_;
  EpochSums sums_;
  std::vector<std::pair<int, Answer>> answers_;
  std::vector<Order> orders_;
  LossGuard guard_;
  std::uint32_t generation_ = 0;
  std::deque<std::string> notes_;  // for people: one with each answer to worker 0
};

}  // namespace convoy
