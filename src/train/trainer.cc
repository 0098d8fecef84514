#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "train/run_rows.h"
#include "train/step_times.h"

namespace convoy {
namespace {

constexpr double kPulse_s = 0.5;
constexpr int kFewestSteps = 4;   // between pulses of several workers
constexpr int kWatchedSteps = 4;  // the first steps, whose times the plan is made from

bool due(std::int64_t every, int epoch, std::int64_t epochs) {
  return epoch == epochs || (every > 0 && epoch % every == 0);
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

}  // namespace

Trainer::Trainer(const TrainConfig& config, Parts parts, RunState start,
                 const std::string& start_name)
    : config_(config),
      parts_(std::move(parts)),
      schedule_(schedule_options(config)),
      state_(std::move(start)),
      data_(parts_.train_samples),
      balance_(parse_balance(config.balance, parts_.workers.size())),
      costs_(std::size_t(parts_.workers.size())),
      pulse_(parts_.workers) {
  if (!state_.seen.empty() && parts_.workers.leads()) data_.restore(state_.seen, start_name);
  if (config_.invariant) {
    const int workers = parts_.workers.size(), shards = int(config_.virtual_shards);
    const auto before = [&](int rank) { return shards * rank / workers; };
    for (int i = 0; i < workers; ++i) balance_.weights[std::size_t(i)] = before(i + 1) - before(i);
  }
  parts_.worker.watch(parts_.allreduce != nullptr);
  if (parts_.workers.size() > 1)
    parts_.workers.comm().run(
        [&](Communicator& communicator) { arrivals_ = std::make_unique<Arrivals>(communicator); });
  if (arrivals_) parts_.recording.set_clock(arrivals_->offset());
  take_share();
}

void Trainer::take_share() {
  share_ = share_of(balance_.weights, parts_.workers.rank());
  parts_.train_loader.set_share(share_);
}

// In invariant mode: how many samples each of the own shards has of a batch of `global`.
std::vector<int> Trainer::shards_of(int global) const {
  std::vector<int> counts;
  if (!config_.invariant) return counts;
  for (int shard = share_.from; shard < share_.to; ++shard)
    counts.push_back(int(share_.begin(std::size_t(global), shard + 1) -
                         share_.begin(std::size_t(global), shard)));
  return counts;
}

bool Trainer::step() {
  parts_.recording.begin_step(state_.updates + 1);
  const double compute_s = parts_.time.compute_s();
  const std::optional<Batch> batch = parts_.train_loader.next();
  if (batch && parts_.load_s > 0) parts_.workers.runtime().sleep_s(parts_.load_s);
  parts_.time.charge(Phase::load);
  if (!batch) {
    parts_.recording.drop_step();
    return false;
  }
  const int global = parts_.train_loader.batch_at(state_.steps);
  const UpdateRate rate{
      .rate = float(learning_rate(schedule_, state_.updates, parts_.train_loader.steps_per_epoch(),
                                  int(config_.epochs))),
      .update = state_.updates + 1};
  const Outcome outcome = parts_.worker.step(*batch, shards_of(global), global, rate);
  if (arrivals_) arrivals_->stamp(parts_.workers.runtime().now_s());
  own_.compute_s += parts_.time.compute_s() - compute_s;
  // Now, since the weights are still those that the step was made with.
  if (parts_.worker.not_finite() && failure_.empty())
    failure_ = describe(*parts_.worker.not_finite());
  parts_.recording.end_step({.step = rate.update,
                             .samples = outcome.samples,
                             .correct = outcome.correct,
                             .loss_sum = outcome.loss_sum,
                             .learning_rate = rate.rate});
  own_.add(outcome);
  data_.add(batch->samples);
  images_ += global;
  ++state_.steps;
  ++state_.updates;
  ++local_steps_;
  if (pulse_.under_way()) collect_pulse();
  const bool alone = parts_.workers.size() == 1;
  if (local_steps_ == next_pulse_ || (alone && parts_.worker.not_finite())) {
    post_pulse();
    if (alone || !planned_) collect_pulse();
  }
  return true;
}

// After the first step, the second and the fourth; then every half second, or every four steps
// where those take longer, counted in steps that all workers agree on. From the plan on a pulse
// travels behind the gradients of its step and is read a step later, so that nobody waits for it.
void Trainer::post_pulse() {
  parts_.time.charge(Phase::other);
  const double now_s = parts_.time.wall_s();
  pulse_steps_ = local_steps_ - last_pulse_;
  own_.step_s = share(now_s - last_pulse_s_, pulse_steps_);
  own_.stop = parts_.interrupt.requested();
  own_.failed = !failure_.empty();
  pulse_.post(own_);
  parts_.recording.exchange();
  own_ = {};
  last_pulse_ = local_steps_;
  last_pulse_s_ = now_s;
}

void Trainer::collect_pulse() {
  parts_.time.charge(Phase::other);
  parts_.recording.wait_for(kNoNode);
  const Pulse pulse = pulse_.collect();
  parts_.recording.wait_over();
  parts_.time.charge(Phase::other);
  if (pulse.failed >= 0) fail();
  learn(pulse);
  show();
  parts_.time.charge(Phase::other);
}

// So that all know of all steps.
void Trainer::exchange_pulse() {
  if (pulse_.under_way()) collect_pulse();
  post_pulse();
  collect_pulse();
}

void Trainer::learn(const Pulse& pulse) {
  state_.outcome.loss_sum += pulse.loss_sum;
  state_.outcome.correct += pulse.correct;
  state_.outcome.samples += pulse.samples;
  interrupted_ = interrupted_ || pulse.stop;
  if (pulse.samples > 0) losses_.push_back(pulse.loss_sum / pulse.samples);
  if (local_steps_ >= kWatchedSteps && !planned_) find_plan();
  if (local_steps_ > 1) consider_balance(pulse);
  if (local_steps_ < kWatchedSteps)
    next_pulse_ = 2 * std::max(local_steps_, 1);
  else
    next_pulse_ = local_steps_ + std::clamp(int(share(kPulse_s, pulse.step_s)),
                                            parts_.workers.size() > 1 ? kFewestSteps : 1, 1000);
}

void Trainer::consider_balance(const Pulse& pulse) {
  if (!balance_.automatic || pulse.samples == 0) return;
  for (std::size_t i = 0; i < costs_.size(); ++i)
    costs_[i].see(pulse.work[i].samples / pulse_steps_, pulse.work[i].seconds / pulse_steps_);
  std::vector<int> weights = rebalanced(int(config_.batch), balance_.weights, costs_);
  if (weights.empty()) return;
  std::vector<std::string> speeds;
  for (const Pulse::Work& work : pulse.work)
    speeds.push_back(fmt::format("{:.0f}", share(work.samples, work.seconds)));
  say(fmt::format("shares of a batch: {} -> {} (images/s of each: {})",
                  fmt::join(balance_.weights, ":"), fmt::join(weights, ":"),
                  fmt::join(speeds, ", ")));
  balance_.weights = std::move(weights);
  take_share();
  parts_.train_loader.start_epoch(std::uint32_t(state_.epochs), state_.steps);
}

// The times of the slowest worker, which all of them know then, decide how gradients travel.
void Trainer::find_plan() {
  planned_ = true;
  parts_.worker.watch(false);
  if (!parts_.allreduce || parts_.workers.size() == 1 || config_.bucket_mib > 0 || !config_.overlap)
    return;
  const StepTimes times =
      replan(parts_.workers.comm(), parts_.model.parameters(), parts_.worker, *parts_.allreduce);
  const BucketPlan& plan = parts_.allreduce->plan();
  say(
      fmt::format("gradients travel in {} piece{}: a step should take {:.1f} ms, of which {:.1f} "
                  "ms are computation",
                  plan.order.size(), plan.order.size() == 1 ? "" : "s", 1e3 * plan.step_s,
                  1e3 * (times.forward_s + times.backward_s)));
}

bool Trainer::run_epoch() {
  parts_.recording.start_epoch(state_.epochs + 1);
  if (parts_.logs) parts_.logs->start_epoch(state_.epochs + 1);
  epoch_start_s_ = parts_.time.wall_s();
  parts_.train_loader.start_epoch(std::uint32_t(state_.epochs), state_.steps);
  while (!interrupted_ && step()) continue;
  parts_.worker.settle();
  exchange_pulse();
  if (interrupted_) return false;
  const std::optional<Score> score = evaluate_epoch();
  if (interrupted_) return false;
  finish_epoch(score);
  return true;
}

std::optional<Score> Trainer::evaluate_epoch() {
  if (!due(config_.eval_every, state_.epochs + 1, config_.epochs)) return std::nullopt;
  merge_buffers();
  parts_.time.charge(Phase::other);
  const bool alone = parts_.workers.size() == 1;
  const EvaluateOptions options{.flip = config_.eval_flip || config_.eval_shift,
                                .shift = config_.eval_shift,
                                .stop = [&] { return alone && parts_.interrupt.requested(); }};
  Tally sums = tally(parts_.model, parts_.test_loader, options);
  std::array counts = {sums.correct, sums.flip_correct, sums.shift_correct, sums.samples};
  parts_.workers.sum(counts);
  sums = {sum_losses(parts_.workers, sums.loss_sum), counts[0], counts[1], counts[2], counts[3]};
  parts_.time.charge(Phase::evaluate);
  exchange_pulse();
  const Score score = score_of(sums, options);
  if (!interrupted_ && !std::isfinite(score.loss))
    throw Diverged(
        fmt::format("the loss is not a finite number in epoch {}, evaluation: lower --lr (now {}), "
                    "or add --warmup-epochs",
                    state_.epochs + 1, config_.lr));
  return score;
}

// Running statistics of batch norm differ between workers, since their samples did: all go on with
// the mean.
void Trainer::merge_buffers() {
  if (parts_.workers.size() == 1 || config_.invariant || config_.batch_norm == "sync") return;
  std::vector<float> values;
  for (const Buffer& buffer : parts_.model.parameters().buffers())
    values.insert(values.end(), buffer.values.begin(), buffer.values.end());
  if (values.empty()) return;
  parts_.workers.sum(values);
  auto next = values.begin();
  for (Buffer& buffer : parts_.model.parameters().buffers())
    for (float& value : buffer.values) value = *next++ / float(parts_.workers.size());
}

void Trainer::finish_epoch(std::optional<Score> test) {
  const Outcome& outcome = state_.outcome;
  const DataCount seen = all_seen().count();
  parts_.time.charge(Phase::other);
  const EpochRecord record{.epoch = state_.epochs + 1,
                           .train_loss = share(outcome.loss_sum, outcome.samples),
                           .train_accuracy = share(outcome.correct, outcome.samples),
                           .test = test,
                           .data = seen,
                           .seconds = parts_.time.wall_s() - epoch_start_s_};
  std::string text = fmt::format("epoch {:>{}}/{}  train loss {:.4f}  accuracy {:6.2f} %",
                                 record.epoch, fmt::formatted_size("{}", config_.epochs),
                                 config_.epochs, record.train_loss, 100 * record.train_accuracy);
  if (test)
    text += fmt::format("  test loss {:.4f}  accuracy {:6.2f} %", test->loss, 100 * test->accuracy);
  if (test && test->flip_accuracy)
    text += fmt::format(" (flips averaged {:6.2f} %)", 100 * *test->flip_accuracy);
  if (test && test->shift_accuracy)
    text += fmt::format(" (and shifts {:6.2f} %)", 100 * *test->shift_accuracy);
  text += fmt::format("  {} images/s  {}  {}", with_commas(std::uint64_t(images_per_s())),
                      record.data.to_string(), duration_text(record.seconds));
  say(text);
  blame();
  record_epoch(parts_.recording, record, state_.steps, images_per_s());
  if (parts_.logs) parts_.logs->epoch(record, state_.updates, images_per_s());
  state_.history.push_back(record);
  ++state_.epochs;
  state_.steps = 0;
  state_.outcome = {};
  data_.start_epoch();
}

bool Trainer::run() {
  while (state_.epochs < config_.epochs) {
    if (!run_epoch()) {
      save();
      return false;
    }
    if (due(config_.checkpoint_every, state_.epochs, config_.epochs) || interrupted_) save();
    if (interrupted_ && state_.epochs < config_.epochs) return false;
  }
  parts_.time.charge(Phase::other);
  return true;
}

void Trainer::save() {
  parts_.worker.settle();
  parts_.time.charge(Phase::other);
  merge_buffers();
  state_.seen = state_.steps > 0 ? all_seen().save() : "";
  if (parts_.workers.leads()) parts_.save(state_);
  parts_.time.charge(Phase::checkpoint);
}

DataLedger Trainer::all_seen() {
  if (parts_.workers.size() == 1) return data_;
  std::vector<std::int64_t> times = data_.times();
  parts_.workers.sum(times);
  DataLedger all(times.size());
  all.set_times(times);
  return all;
}

// Who kept the others waiting in the epoch, if somebody did.
void Trainer::blame() {
  if (!arrivals_) return;
  std::vector<Blame> blames;
  parts_.workers.comm().run(
      [&](Communicator& communicator) { blames = arrivals_->settle(communicator); });
  parts_.recording.set_clock(arrivals_->offset());
  record_arrivals(parts_.recording, state_.epochs + 1, blames);
  if (const std::string line = blame_line(blames); !line.empty()) say(line);
}

std::string Trainer::describe(const NotFinite& found) const {
  const std::string worker =
      parts_.workers.size() > 1 ? fmt::format("worker {}: ", parts_.workers.rank()) : std::string();
  const std::string advice = parts_.keep_case(found);
  return fmt::format(
      "{}{} is not a finite number in epoch {}, step {}: lower --lr (now {}), or add "
      "--warmup-epochs{}{}",
      worker, found.place, state_.epochs + 1, state_.steps + 1, config_.lr,
      advice.empty() ? "" : "; ", advice);
}

void Trainer::fail() {
  for (const std::string& text : parts_.workers.gather(failure_))
    if (!text.empty()) throw Diverged(text);
  throw Diverged("a worker cannot go on");
}

void Trainer::say(const std::string& line) {
  if (!parts_.workers.leads()) return;
  progress_.line(line);
  parts_.recording.event("note", line);
}

void Trainer::show() {
  if (!parts_.workers.leads()) return;
  const Outcome& outcome = state_.outcome;
  if (parts_.logs && !losses_.empty())
    parts_.logs->progress(state_.updates, losses_.back(), images_per_s());
  record_progress(parts_.recording, {.steps = state_.updates,
                                     .wall_s = parts_.recording.at_s(),
                                     .images_per_s = images_per_s(),
                                     .train_loss = share(outcome.loss_sum, outcome.samples)});
  progress_.step({.epoch = state_.epochs + 1,
                  .epochs = int(config_.epochs),
                  .done = outcome.samples,
                  .total = std::int64_t(parts_.train_samples),
                  .images_per_s = images_per_s(),
                  .loss = share(outcome.loss_sum, outcome.samples),
                  .accuracy = share(outcome.correct, outcome.samples)});
}

double Trainer::images_per_s() const { return share(double(images_), parts_.time.training_s()); }

}  // namespace convoy
