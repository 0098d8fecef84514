#include "train/recording.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "measure/resources.h"

namespace convoy {
namespace {

constexpr double kHandOver_s = 0.5, kSample_s = 1;
constexpr std::int64_t kOld_ns = 1'000'000'000;
// Ranks whose steps are kept in detail, and how many spans of all of them.
constexpr int kDetailedRanks = 16;
constexpr std::size_t kMostSpans = 80'000;

std::array<std::int64_t, kPhases> phases_ns(const TimeLedger& time) {
  std::array<std::int64_t, kPhases> all;
  for (std::size_t i = 0; i < kPhases; ++i) all[i] = std::llround(1e9 * time.seconds(Phase(i)));
  return all;
}

}  // namespace

Recording::Recording(Workers& workers, TimeLedger& time, StoreWriter* writer,
                     RecordingOptions options)
    : workers_(workers), time_(time), writer_(writer), options_(std::move(options)) {
  workers_.comm().observe(this);
  constexpr int kTrials = 1000;
  TimeLedger trial(workers_.runtime());
  for (int i = 0; i < kTrials; ++i) trial.charge(Phase::other);
  charge_cost_s_ = trial.wall_s() / kTrials;
  if (options_.samples_resources && writer_)
    writer_->every_second(
        [clock = options_.base_s - options_.start_s, rank = workers_.rank()](Records& records) {
          ResourceRecord record = sample_resources();
          record.rank = rank;
          record.at_s = now_s() + clock;
          records.resources.push_back(record);
        });
}

Recording::~Recording() {
  if (options_.samples_resources && writer_) writer_->every_second({});
  workers_.comm().observe(nullptr);
  time_.watch(nullptr);
}

// Pairs, since a step's gradients travel into the next one: 2 and 3, 16 and 17, 64 and 65, 256 ...
bool Recording::is_sampled(std::int64_t step) const {
  if (!recorded() || workers_.rank() >= kDetailedRanks) return false;
  const std::size_t sharing = std::size_t(std::min(workers_.size(), kDetailedRanks));
  if (spans_ >= kMostSpans / sharing) return false;
  if (options_.detailed && step <= 4) return true;
  const std::int64_t first = step & ~std::int64_t{1};
  if (first == 2) return true;
  const bool power_of_2 = (first & (first - 1)) == 0;
  const bool power_of_4 = power_of_2 && (first & 0x5555555555555555) != 0;
  return first >= 16 && (options_.detailed ? power_of_2 : power_of_4);
}

void Recording::begin_step(std::int64_t step) {
  time_.charge(Phase::other);
  close_step();
  collect();
  hand_over(false);
  step_ = StepRecord{.step = step, .begin_ns = run_time_ns(time_.last_s())};
  before_ns_ = phases_ns(time_);
  const bool sampled = is_sampled(step);
  time_.watch(sampled ? &charges_ : nullptr);
  computing_ = true;
  {
    const std::lock_guard lock(mutex_);
    sampled_step_ = sampled ? step : 0;
  }
  cost_s_ += workers_.runtime().now_s() - time_.last_s();
}

void Recording::end_step(const StepFacts& facts) {
  CHECK(step_ && step_->step == facts.step, "step {} ends without a beginning", facts.step);
  computing_ = false;
  step_->rank = workers_.rank();
  step_->epoch = time_.epoch();
  step_->samples = facts.samples;
  step_->correct = facts.correct;
  step_->loss = facts.samples > 0 ? facts.loss_sum / facts.samples : std::nan("");
  step_->learning_rate = facts.learning_rate;
  step_->staleness = facts.staleness;
  ++steps_;
}

// Fills in the step's times. A step that found no batch is none, but its time is in the ledger.
void Recording::close_step() {
  if (!step_) return;
  const std::array<std::int64_t, kPhases> now = phases_ns(time_);
  const auto spent = [&](Phase phase) {
    return now[std::size_t(phase)] - before_ns_[std::size_t(phase)];
  };
  step_->load_ns = spent(Phase::load);
  step_->forward_ns = spent(Phase::forward);
  step_->backward_ns = spent(Phase::backward);
  step_->communication_ns = spent(Phase::communication);
  step_->wait_ns = spent(Phase::wait);
  step_->update_ns = spent(Phase::update);
  step_->other_ns = spent(Phase::other);
  if (!charges_.empty()) keep_spans();
  if (recorded() && step_->epoch > 0) recent_.push_back(*step_);
  step_.reset();
}

void Recording::keep_spans() {
  int number = 0;
  for (const TimeLedger::Charge& charge : charges_) {
    if (charge.end_s <= charge.begin_s) continue;
    out_.spans.push_back({.step = step_->step,
                          .begin_ns = run_time_ns(charge.begin_s),
                          .end_ns = run_time_ns(charge.end_s),
                          .rank = workers_.rank(),
                          .number = number++,
                          .lane = charge.phase == Phase::update ? Lane::optimizer : Lane::compute,
                          .phase = std::int32_t(charge.phase),
                          .node = charge.node});
  }
  charges_.clear();
  const std::lock_guard lock(mutex_);
  for (SpanRecord& span : job_spans_) {
    span.number = number++;
    out_.spans.push_back(span);
  }
  job_spans_.clear();
  spans_ += std::size_t(number);
}

void Recording::carried_out(const CommJob& job) {
  const std::lock_guard lock(mutex_);
  if (workers_.size() > 1) jobs_.push_back(job);
  if (sampled_step_ > 0)
    job_spans_.push_back({.step = sampled_step_,
                          .begin_ns = run_time_ns(job.begin_s),
                          .end_ns = run_time_ns(job.end_s),
                          .operation = std::int64_t(job.number),
                          .bytes = std::int64_t(job.bytes),
                          .rank = workers_.rank(),
                          .lane = Lane::communication});
}

void Recording::waited(std::uint64_t number, double begin_s, double end_s) {
  if (waiting_node_ == kNotWaiting && !computing_) return;  // for an evaluation or a checkpoint
  if (workers_.size() == 1) return;
  time_.carve(Phase::communication, end_s - begin_s);
  waits_.push_back({.number = number,
                    .step = step_ ? step_->step : 0,
                    .epoch = time_.epoch(),
                    .node = std::max(waiting_node_, kNoNode),
                    .begin_s = begin_s,
                    .end_s = end_s});
}

void Recording::abandon() {
  close_step();
  release_steps(true);
  hand_over(true);
}

StepRecord* Recording::recent(std::int64_t step) {
  if (recent_.empty()) return nullptr;
  const std::int64_t place = step - recent_.front().step;
  return place >= 0 && place < std::int64_t(recent_.size()) ? &recent_[std::size_t(place)]
                                                            : nullptr;
}

// Steps without open waits are final.
void Recording::release_steps(bool all) {
  const std::int64_t open =
      waits_.empty() || all ? std::numeric_limits<std::int64_t>::max() : waits_.front().step;
  while (!recent_.empty() && recent_.front().step < open) {
    out_.steps.push_back(recent_.front());
    recent_.pop_front();
    if (provisional_ > 0) --provisional_;
  }
}

// To the writer, twice a second. Steps that wait long to be final are written as they are, and
// again later.
void Recording::hand_over(bool all) {
  if (!recorded()) return;
  if (!all && time_.last_s() - handed_over_s_ < kHandOver_s) return;
  handed_over_s_ = time_.last_s();
  const bool old =
      !recent_.empty() && run_time_ns(time_.last_s()) - recent_.front().begin_ns > kOld_ns;
  for (; old && provisional_ < recent_.size(); ++provisional_)
    out_.steps.push_back(recent_[provisional_]);
  if (all || time_.last_s() - sampled_s_ >= kSample_s) sample();
  time_.take(workers_.rank(), steps_, out_);
  steps_ = 0;
  for (const auto& [key, record] : settled_waits_) out_.waits.push_back(record);
  settled_waits_.clear();
  if (writer_ && out_.count() > 0) writer_->add(std::exchange(out_, {}));
}

// Traffic; and resources where the process has no writer that would do it.
void Recording::sample() {
  sampled_s_ = time_.last_s();
  if (options_.traffic) options_.traffic->take(at_s(), out_);
  if (!options_.samples_resources || !far()) return;
  ResourceRecord record = sample_resources();
  record.rank = workers_.rank();
  record.at_s = at_s();
  out_.resources.push_back(record);
}

double Recording::own_cost_s() const {
  return cost_s_ + charge_cost_s_ * double(time_.charges()) + (writer_ ? writer_->cpu_s() : 0);
}

void Recording::start_epoch(int epoch) {
  time_.charge(Phase::other);
  hand_over(true);
  time_.start_epoch(epoch);
}

void Recording::change(std::function<void(Database&, std::int64_t)> change) {
  if (!writer_ || !workers_.leads()) return;
  writer_->later([change = std::move(change), run = writer_->run()](Database& database) {
    change(database, run);
  });
}

void Recording::event(const std::string& kind, const std::string& text) {
  change([kind, text, at = at_s()](Database& database, std::int64_t run) {
    database
        .prepare(
            "INSERT INTO events SELECT ?1, 1 + coalesce(max(number), 0), ?2, 0, ?3, ?4 FROM events "
            "WHERE run = ?1")
        .bind(run, at, kind, text)
        .run();
  });
}

void Recording::add(Records&& records) {
  if (recorded()) out_.append(std::move(records));
}

}  // namespace convoy
