#include "train/server_trainer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "train/data_ledger.h"
#include "train/records.h"
#include "train/run_rows.h"
#include "train/server_summary.h"

namespace convoy {
namespace {

constexpr double kLossUnit = 1.0 / (1 << 24);
constexpr double kMostLoss = 1e9;  // of a sample: beyond, its size says nothing

double share(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

std::int64_t in_units(double loss_sum, std::int64_t samples) {
  const double most = kMostLoss * double(std::max<std::int64_t>(samples, 1));
  return std::isfinite(loss_sum) ? std::llround(std::clamp(loss_sum, -most, most) / kLossUnit) : 0;
}

}  // namespace

ServerTrainer::ServerTrainer(const TrainConfig& config, Parts parts, RunState start)
    : config_(config),
      parts_(std::move(parts)),
      state_(std::move(start)),
      before_(state_.outcome),
      first_updates_(state_.updates),
      buffers_(parts_.job.buffers) {}

bool ServerTrainer::run() {
  epoch_start_s_ = parts_.time.wall_s();
  parts_.client.ask(result_);
  for (;;) {
    const Answer answer = parts_.client.answer(buffers_);
    parts_.time.charge(Phase::wait);
    if (const std::string note = text_in(answer.text);
        !note.empty() && answer.kind < Answer::failed)
      say(note);
    switch (answer.kind) {
      case Answer::train:
        train(answer);
        break;
      case Answer::evaluate:
        evaluate(answer);
        break;
      case Answer::rest:
        rest(answer);
        break;
      case Answer::merged:
        take_buffers(answer);
        parts_.client.ask({});
        break;
      case Answer::epoch:
        finish_epoch(answer);
        parts_.client.ask({.stop = parts_.interrupt.requested()});
        break;
      case Answer::stopped:
        if (answer.buffers)
          save_partial(answer);
        else if (leads())
          save();
        gather_statistics();
        return false;
      case Answer::finished:
        parts_.time.charge(Phase::other);
        return true;
      default:
        throw Diverged(text_in(answer.text));
    }
  }
}

BatchShare ServerTrainer::share_of_part(std::uint32_t part) const {
  const int workers = int(config_.workers), own = int(part);
  if (!config_.invariant) return {.from = own, .to = own + 1, .size = workers};
  const int shards = int(config_.virtual_shards);
  return {.from = shards * own / workers, .to = shards * (own + 1) / workers, .size = shards};
}

// Asks for the next lease before it begins with this one, so that it never waits for it.
void ServerTrainer::train(const Answer& lease) {
  parts_.recording.begin_step(first_updates_ + ++steps_);
  result_.stop = parts_.interrupt.requested();
  parts_.client.ask(std::exchange(result_, {}));
  const BatchShare own = share_of_part(lease.part);
  const Batch batch = parts_.train_loader.part(lease.epoch_number, int(lease.step), own);
  parts_.time.charge(Phase::load);
  const std::size_t global = std::size_t(parts_.train_loader.batch_at(int(lease.step)));
  std::vector<int> shards;
  for (int shard = own.from; config_.invariant && shard < own.to; ++shard)
    shards.push_back(int(own.begin(global, shard + 1) - own.begin(global, shard)));
  parts_.strategy.begin_step({.epoch = lease.epoch_number,
                              .samples = batch.size(),
                              .mean_over = int(lease.mean_over),
                              .extra = lease.extra != 0});
  const Outcome outcome = parts_.worker.step(batch, shards, int(lease.mean_over), {});
  parts_.recording.end_step({.step = first_updates_ + steps_,
                             .samples = outcome.samples,
                             .correct = outcome.correct,
                             .loss_sum = outcome.loss_sum});
  result_.lease = lease.lease;
  result_.loss = in_units(outcome.loss_sum, outcome.samples);
  result_.correct = outcome.correct;
  result_.samples = batch.size();
  if (parts_.worker.not_finite()) {
    set_text(result_.failure, describe(*parts_.worker.not_finite(), lease));
    parts_.worker.forget_not_finite();
  }
  show(lease);
  parts_.time.charge(Phase::other);
}

EvaluateOptions ServerTrainer::evaluation() const {
  return {.flip = config_.eval_flip || config_.eval_shift, .shift = config_.eval_shift};
}

void ServerTrainer::evaluate(const Answer& lease) {
  Tally sums;
  tally_batch(parts_.model, parts_.test_loader.part(0, int(lease.step), {}), evaluation(), sums);
  Ask result{.lease = lease.lease,
             .loss = in_units(sums.loss_sum, sums.samples),
             .correct = sums.correct,
             .flip_correct = sums.flip_correct,
             .shift_correct = sums.shift_correct,
             .samples = sums.samples};
  if (!std::isfinite(sums.loss_sum))
    set_text(result.failure,
             fmt::format("the loss is not a finite number in epoch {}, evaluation: lower --lr (now "
                         "{}), or add --warmup-epochs",
                         lease.epoch_number + 1, config_.lr));
  parts_.time.charge(Phase::evaluate);
  parts_.client.ask(result);
}

void ServerTrainer::rest(const Answer& answer) {
  parts_.worker.settle();
  parts_.client.rest(answer.epoch_number);
  auto place = buffers_.begin();
  if (!buffers_.empty())
    for (const Buffer& buffer : parts_.model.parameters().buffers())
      place = std::copy(buffer.values.begin(), buffer.values.end(), place);
  result_.kind = Ask::arrive;
  set_text(result_.figures, worker_figures_json(parts_.client.statistics(), parts_.time).dump());
  result_.stop = parts_.interrupt.requested();
  parts_.client.ask(std::exchange(result_, {}), buffers_);
  parts_.time.charge(Phase::other);
}

// Everybody has come together: nobody pushes, so that all get the same weights.
void ServerTrainer::take_buffers(const Answer& answer) {
  auto place = buffers_.begin();
  if (!buffers_.empty())
    for (Buffer& buffer : parts_.model.parameters().buffers()) {
      std::copy_n(place, buffer.values.size(), buffer.values.begin());
      place += std::ptrdiff_t(buffer.values.size());
    }
  parts_.strategy.pull_all();
  learn(answer.sums);
  parts_.time.charge(Phase::wait);
}

void ServerTrainer::learn(const EpochSums& sums) {
  state_.outcome = before_;
  if (state_.epochs != parts_.job.course.first_epoch) state_.outcome = {};
  state_.outcome.loss_sum += double(sums.loss) * kLossUnit;
  state_.outcome.correct += int(sums.correct);
  state_.outcome.samples += int(sums.samples);
  epoch_images_ = sums.samples;
}

void ServerTrainer::finish_epoch(const Answer& answer) {
  learn(answer.sums);
  const EpochSums& sums = answer.sums;
  const Outcome& outcome = state_.outcome;
  parts_.time.charge(Phase::other);
  EpochRecord record{.epoch = state_.epochs + 1,
                     .train_loss = share(outcome.loss_sum, outcome.samples),
                     .train_accuracy = share(outcome.correct, outcome.samples),
                     .test = std::nullopt,
                     .data = {.seen = std::size_t(sums.seen),
                              .missing = std::size_t(sums.missing),
                              .twice = std::size_t(sums.twice)},
                     .seconds = parts_.time.wall_s() - epoch_start_s_};
  if (answer.evaluated)
    record.test = score_of({.loss_sum = double(sums.test_loss) * kLossUnit,
                            .correct = sums.test_correct,
                            .flip_correct = sums.test_flip_correct,
                            .shift_correct = sums.test_shift_correct,
                            .samples = sums.test_samples},
                           evaluation());
  images_ += std::exchange(epoch_images_, 0);
  say(epoch_line(record, config_.epochs, images_per_s()));
  record_epoch(parts_.recording, record, parts_.job.course.steps(), images_per_s());
  parts_.recording.start_epoch(record.epoch + 1);
  state_.history.push_back(record);
  ++state_.epochs;
  state_.steps = 0;
  state_.outcome = {};
  epoch_start_s_ = parts_.time.wall_s();
  if (!leads()) return;
  gather_statistics();
  const bool last = state_.epochs == config_.epochs;
  if (last || parts_.interrupt.requested() ||
      (config_.checkpoint_every > 0 && state_.epochs % config_.checkpoint_every == 0))
    save();
}

// Where the user ended it: between two steps.
void ServerTrainer::save_partial(const Answer& answer) {
  take_buffers(answer);
  state_.steps = int(answer.step);
  if (!leads()) return;
  gather_statistics();
  DataLedger seen(std::size_t(parts_.job.course.samples));
  for (int step = 0; step < state_.steps; ++step)
    seen.add(parts_.train_loader.samples_of(answer.epoch_number, step, {}));
  state_.seen = state_.steps > 0 ? seen.save() : "";
  save();
}

void ServerTrainer::save() {
  const std::vector<NamedArena> state = parts_.optimizer.state();
  for (std::size_t i = 0; i < state.size(); ++i)
    for (int server = 0; server < parts_.job.layout.servers; ++server) {
      std::vector<float> shard(parts_.job.layout.shards[std::size_t(server)]);
      parts_.client.fetch_state(server, i, shard);
      scatter_shard(parts_.job.layout, server, shard, state[i].second);
    }
  parts_.save(state_);
  parts_.time.charge(Phase::other);
}

// The leading worker asks every server.
void ServerTrainer::gather_statistics() {
  if (!leads()) return;
  parts_.client.settle_accounts();
  std::vector<nlohmann::json> servers;
  for (int server = 0; server < parts_.job.layout.servers; ++server)
    if (const std::string text = parts_.client.report(server); !text.empty())
      servers.push_back(nlohmann::json::parse(text));
  std::vector<nlohmann::json> workers;
  for (const std::string& text : parts_.client.figures())
    workers.push_back(text.empty() ? nlohmann::json() : nlohmann::json::parse(text));
  statistics_ = server_statistics_json(servers, workers, parts_.client.statistics());
  state_.updates = first_updates_ + statistics_.at("weight_updates").get<std::int64_t>();
  record_staleness(parts_.recording, statistics_.at("staleness"));
  record_progress(parts_.recording,
                  {.steps = state_.updates,
                   .wall_s = parts_.recording.at_s(),
                   .images_per_s = images_per_s(),
                   .train_loss = state_.history.empty() ? 0 : state_.history.back().train_loss});
}

std::string ServerTrainer::describe(const NotFinite& found, const Answer& lease) const {
  const std::string advice = config_.guard ? "" : parts_.keep_case(found);
  return fmt::format(
      "worker {}: {} is not a finite number in epoch {}, step {}: lower --lr (now {}), or add "
      "--warmup-epochs{}{}",
      parts_.rank, found.place, lease.epoch_number + 1, lease.step + 1, config_.lr,
      advice.empty() ? "" : "; ", advice);
}

void ServerTrainer::say(const std::string& line) {
  if (leads()) progress_.line(line);
}

void ServerTrainer::show(const Answer& answer) {
  if (!leads()) return;
  learn(answer.sums);
  const Outcome& outcome = state_.outcome;
  progress_.step({.epoch = state_.epochs + 1,
                  .epochs = int(config_.epochs),
                  .done = outcome.samples,
                  .total = parts_.job.course.samples,
                  .images_per_s = images_per_s(),
                  .loss = share(outcome.loss_sum, outcome.samples),
                  .accuracy = share(outcome.correct, outcome.samples)});
}

double ServerTrainer::images_per_s() const {
  return share(double(images_ + epoch_images_), parts_.time.training_s());
}

std::vector<RankTotals> ServerTrainer::totals() const {
  const nlohmann::json workers = statistics_.value("workers", nlohmann::json::array());
  return totals_of(std::vector<nlohmann::json>(workers.begin(), workers.end()));
}

RunView ServerTrainer::view() const {
  return {.state = state_,
          .time = parts_.time,
          .images_per_s = images_per_s(),
          .more = {{"parameter_servers", statistics_}}};
}

}  // namespace convoy
