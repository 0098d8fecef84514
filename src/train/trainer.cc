#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace convoy {
namespace {

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
      data_(parts_.train_samples) {
  if (!state_.seen.empty()) data_.restore(state_.seen, start_name);
}

bool Trainer::step() {
  const std::optional<Batch> batch = parts_.train_loader.next();
  time_.charge(Phase::load);
  if (!batch) return false;
  const Outcome outcome = parts_.model.forward(*batch);
  time_.charge(Phase::forward);
  check_loss(outcome.loss_sum, fmt::format("step {}", state_.steps + 1));
  const float rate = float(learning_rate(
      schedule_, state_.updates, parts_.train_loader.steps_per_epoch(), int(config_.epochs)));
  std::vector<ArenaRange> moved =
      parts_.model.backward({}, parts_.optimizer.in_backward(rate, state_.updates + 1));
  time_.charge(Phase::backward);
  parts_.optimizer.update_others(std::move(moved), rate, state_.updates + 1);
  time_.charge(Phase::update);

  data_.add(batch->samples);
  images_ += batch->size();
  state_.outcome.loss_sum += outcome.loss_sum;
  state_.outcome.correct += outcome.correct;
  state_.outcome.samples += outcome.samples;
  ++state_.steps;
  ++state_.updates;
  return true;
}

bool Trainer::run_epoch() {
  epoch_start_s_ = time_.wall_s();
  parts_.train_loader.start_epoch(std::uint32_t(state_.epochs), state_.steps);
  while (step()) {
    show();
    if (parts_.interrupt.requested()) return false;
  }
  std::optional<Score> score;
  if (due(config_.eval_every, state_.epochs + 1, config_.epochs)) {
    time_.charge(Phase::other);
    score =
        evaluate(parts_.model, parts_.test_loader,
                 {.flip = config_.eval_flip, .stop = [&] { return parts_.interrupt.requested(); }});
    time_.charge(Phase::evaluate);
    if (parts_.interrupt.requested()) return false;
    check_loss(score->loss, "evaluation");
  }
  finish_epoch(score);
  return true;
}

void Trainer::finish_epoch(std::optional<Score> test) {
  const Outcome& outcome = state_.outcome;
  time_.charge(Phase::other);
  const EpochRecord record{.epoch = state_.epochs + 1,
                           .train_loss = share(outcome.loss_sum, outcome.samples),
                           .train_accuracy = share(outcome.correct, outcome.samples),
                           .test = test,
                           .data = data_.count(),
                           .seconds = time_.wall_s() - epoch_start_s_};
  std::string text = fmt::format("epoch {:>{}}/{}  train loss {:.4f}  accuracy {:6.2f} %",
                                 record.epoch, fmt::formatted_size("{}", config_.epochs),
                                 config_.epochs, record.train_loss, 100 * record.train_accuracy);
  if (test)
    text += fmt::format("  test loss {:.4f}  accuracy {:6.2f} %", test->loss, 100 * test->accuracy);
  if (test && test->flip_accuracy)
    text += fmt::format(" (flips averaged {:6.2f} %)", 100 * *test->flip_accuracy);
  text += fmt::format("  {} images/s  {}  {}", with_commas(std::uint64_t(images_per_s())),
                      record.data.to_string(), duration_text(record.seconds));
  progress_.line(text);
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
    if (due(config_.checkpoint_every, state_.epochs, config_.epochs) ||
        parts_.interrupt.requested())
      save();
    if (parts_.interrupt.requested() && state_.epochs < config_.epochs) return false;
  }
  time_.charge(Phase::other);
  return true;
}

void Trainer::save() {
  state_.seen = state_.steps > 0 ? data_.save() : "";
  parts_.save(state_);
  time_.charge(Phase::other);
}

void Trainer::check_loss(double loss, const std::string& where) const {
  if (std::isfinite(loss)) return;
  throw Diverged(
      fmt::format("the loss is not a finite number in epoch {}, {}: lower --lr (now {}), or "
                  "add --warmup-epochs",
                  state_.epochs + 1, where, config_.lr));
}

void Trainer::show() {
  const Outcome& outcome = state_.outcome;
  progress_.step({.epoch = state_.epochs + 1,
                  .epochs = int(config_.epochs),
                  .done = outcome.samples,
                  .total = std::int64_t(parts_.train_samples),
                  .images_per_s = images_per_s(),
                  .loss = share(outcome.loss_sum, outcome.samples),
                  .accuracy = share(outcome.correct, outcome.samples)});
  time_.charge(Phase::other);
}

double Trainer::images_per_s() const { return share(double(images_), time_.training_s()); }

}  // namespace convoy
