// The part of a Recording that talks to the other workers: who was waited for, and what far workers
// noted.
#include <algorithm>
#include <cmath>
#include <utility>

#include "train/recording.h"

namespace convoy {
namespace {

constexpr Tag kSizeTag = 0x3ffd0000, kRecordsTag = kSizeTag + 1;
constexpr double kTimeout_s = 120;

// A time and a rank as one number, the larger the later. Good for 100 days and 1024 ranks.
constexpr int kRankBits = 10;
std::int64_t arrival_key(double time_s, int rank) {
  return (std::int64_t(std::max(0.0, 1e9 * time_s)) << kRankBits) | rank;
}
double arrival_time_s(std::int64_t key) { return 1e-9 * double(key >> kRankBits); }
int arrival_rank(std::int64_t key) { return int(key & ((1 << kRankBits) - 1)); }

}  // namespace

// On the communicating task.
void Recording::settle(Communicator& communicator) {
  Settled settled;
  {
    const std::lock_guard lock(mutex_);
    for (const CommJob& job : jobs_) {
      settled.numbers.push_back(job.number);
      settled.latest.push_back(arrival_key(run_time_s(job.posted_s), workers_.rank()));
    }
    jobs_.clear();
  }
  if (!settled.latest.empty()) communicator.all_reduce(settled.latest, Reduction::max);
  const std::lock_guard lock(mutex_);
  settled_.push_back(std::move(settled));
}

// On the communicating task: what far workers noted, to the leading one.
void Recording::deliver(Communicator& communicator) {
  Transport& transport = communicator.transport();
  const auto bytes_of = [](std::uint64_t& size) {
    return std::as_writable_bytes(std::span(&size, 1));
  };
  if (far()) {
    Records records;
    {
      const std::lock_guard lock(mutex_);
      std::swap(records, outgoing_);
    }
    const std::vector<std::byte> bytes =
        records.count() > 0 ? records.pack() : std::vector<std::byte>();
    std::uint64_t size = bytes.size();
    transport.wait(transport.send(0, kSizeTag, bytes_of(size)), kTimeout_s);
    if (size > 0) transport.wait(transport.send(0, kRecordsTag, bytes), kTimeout_s);
  }
  if (!workers_.leads()) return;
  for (const int rank : options_.far) {
    std::uint64_t size = 0;
    transport.wait(transport.recv(rank, kSizeTag, bytes_of(size)), kTimeout_s);
    std::vector<std::byte> bytes(size);
    if (size == 0) continue;
    transport.wait(transport.recv(rank, kRecordsTag, bytes), kTimeout_s);
    if (writer_) writer_->add(Records::unpack(bytes));
  }
}

void Recording::exchange() {
  if (workers_.size() == 1) return;
  if (far()) {
    hand_over(true);
    const std::lock_guard lock(mutex_);
    outgoing_.append(std::exchange(out_, {}));
  }
  workers_.comm().post([this](Communicator& communicator) {
    settle(communicator);
    if (!options_.far.empty()) deliver(communicator);
  });
}

void Recording::finish() {
  time_.charge(Phase::other);
  close_step();
  for (int round = 0; round < 2 && workers_.size() > 1; ++round) {  // the second brings far records
    exchange();
    workers_.comm().run([](Communicator&) {});
    collect();
  }
  hand_over(true);
  if (writer_) writer_->flush();
  if (workers_.size() > 1)
    workers_.comm().run([](Communicator& communicator) { communicator.barrier(); });
}

void Recording::attribute(const Wait& wait, std::int64_t latest) {
  const int rank = arrival_rank(latest);
  if (rank == workers_.rank()) return;
  const double waited_s =
      std::clamp(arrival_time_s(latest) - run_time_s(wait.begin_s), 0.0, wait.end_s - wait.begin_s);
  if (waited_s <= 0) return;
  time_.move(wait.epoch, Phase::communication, Phase::wait, waited_s);
  waited_for_[rank] += waited_s;
  WaitRecord& record = settled_waits_[{wait.epoch, rank, wait.node}];
  record = {.rank = workers_.rank(),
            .epoch = wait.epoch,
            .for_rank = rank,
            .node = wait.node,
            .count = record.count + 1,
            .seconds = record.seconds + waited_s};
  StepRecord* step = recent(wait.step);
  if (!step) return;
  const std::int64_t waited_ns = std::llround(1e9 * waited_s);
  step->communication_ns -= waited_ns;
  step->wait_ns += waited_ns;
  if (waited_ns <= step->longest_wait_ns) return;
  step->longest_wait_ns = waited_ns;
  step->wait_rank = rank;
  step->wait_node = wait.node;
  step->wait_operation = std::int64_t(wait.number);
}

// Takes in what the communicating task has settled since the last time.
void Recording::collect() {
  std::vector<Settled> settled;
  {
    const std::lock_guard lock(mutex_);
    settled.swap(settled_);
  }
  for (const Settled& one : settled) {
    if (one.numbers.empty()) continue;
    while (!waits_.empty() && waits_.front().number <= one.numbers.back()) {
      const Wait& wait = waits_.front();
      const auto found = std::lower_bound(one.numbers.begin(), one.numbers.end(), wait.number);
      if (found != one.numbers.end() && *found == wait.number)
        attribute(wait, one.latest[std::size_t(found - one.numbers.begin())]);
      waits_.pop_front();
    }
  }
  release_steps(false);
}

std::vector<RankTotals> Recording::all_totals() {
  constexpr std::size_t kColumns = kPhases + 5;
  std::vector<std::int64_t> sums(kColumns * std::size_t(workers_.size()), 0);
  std::int64_t* own = &sums[kColumns * std::size_t(workers_.rank())];
  for (std::size_t i = 0; i < kPhases; ++i) own[i] = std::llround(1e9 * time_.seconds(Phase(i)));
  std::pair<int, double> worst = {-1, 0};
  for (const auto& [rank, seconds] : waited_for_)
    if (seconds > worst.second) worst = {rank, seconds};
  own[kPhases] = worst.first;
  own[kPhases + 1] = std::llround(1e9 * worst.second);
  own[kPhases + 2] = std::llround(1e9 * clock_offset_s_);
  own[kPhases + 3] = std::llround(1e9 * clock_uncertainty_s_);
  own[kPhases + 4] = std::llround(1e9 * time_.wall_s());
  if (workers_.size() > 1) workers_.sum(sums);
  std::vector<RankTotals> all;
  for (const std::int64_t* row = sums.data(); row != sums.data() + sums.size(); row += kColumns) {
    RankTotals& rank = all.emplace_back();
    for (std::size_t i = 0; i < kPhases; ++i) rank.seconds[i] = 1e-9 * double(row[i]);
    rank.waited_rank = int(row[kPhases]);
    rank.waited_s = 1e-9 * double(row[kPhases + 1]);
    rank.clock_offset_s = 1e-9 * double(row[kPhases + 2]);
    rank.clock_uncertainty_s = 1e-9 * double(row[kPhases + 3]);
    rank.wall_s = 1e-9 * double(row[kPhases + 4]);
  }
  return all;
}

}  // namespace convoy
