#include "sync/ps/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "sync/ps/policy.h"

namespace convoy {
namespace {

constexpr double kLossUnit = 1.0 / (1 << 24);

}  // namespace

Coordinator::Coordinator(const ServerJob& job)
    : job_(job),
      course_(job.course),
      fixed_parts_(has_fixed_parts(job.policy)),
      epoch_(course_.first_epoch),
      first_step_(course_.first_step),
      alive_(std::size_t(job.workers), 1),
      waiting_(std::size_t(job.workers)),
      buffers_(std::size_t(job.workers)),
      figures_(std::size_t(job.workers)),
      guard_(course_.guard, job.policy, job.workers) {
  begin_epoch();
}

// Parts without samples are leased only where every worker takes part in every step.
void Coordinator::begin_epoch() {
  phase_ = Phase::train;
  lease_base_ += std::int64_t(leases_.size());
  leases_.clear();
  sums_ = {};
  rested_.assign(alive_.size(), 0);
  last_step_ = course_.steps() - 1;
  const std::size_t width = std::size_t(course_.parts);
  parts_.assign(std::size_t(course_.steps()) * width, Part::open);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const int step = int(i / width), part = int(i % width);
    const bool empty = course_.part_samples(step, part) == 0;
    if (step < first_step_ || (empty && !fixed_parts_)) parts_[i] = Part::done;
  }
  sums_.missing = course_.samples - std::min(course_.samples, first_step_ * course_.batch);
  sums_.seen = course_.samples - sums_.missing;
  tests_.assign(std::size_t(course_.test_steps), Part::open);
  evaluates_ = epoch_ + 1 == course_.epochs ||
               (course_.eval_every > 0 && (epoch_ + 1) % course_.eval_every == 0);
}

bool Coordinator::all_done(const std::vector<Part>& parts) const {
  if (&parts == &tests_ && !evaluates_) return true;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i] != Part::done && (&parts == &tests_ || int(i) / course_.parts <= last_step_))
      return false;
  return true;
}

bool Coordinator::everybody(Ask::Kind kind) const {
  for (std::size_t i = 0; i < alive_.size(); ++i)
    if (alive_[i] && !(waiting_[i] && waiting_[i]->kind == kind)) return false;
  return true;
}

// With fixed parts a worker walks down its own column, then takes what lost workers left.
std::optional<std::int64_t> Coordinator::next_part(int worker) const {
  const std::int64_t width = course_.parts, end = std::int64_t(last_step_ + 1) * width;
  const auto open = [&](std::int64_t part) { return parts_[std::size_t(part)] == Part::open; };
  if (fixed_parts_)
    for (std::int64_t part = worker; part < end; part += width)
      if (open(part)) return part;
  for (std::int64_t part = 0; part < end; ++part)
    if (open(part) && (!fixed_parts_ || !alive_[std::size_t(part % width)])) return part;
  return std::nullopt;
}

void Coordinator::lease(int worker, std::int64_t number, bool test) {
  (test ? tests_ : parts_)[std::size_t(number)] = Part::leased;
  leases_.push_back({.worker = worker, .number = number, .test = test});
  Answer made{.kind = test ? Answer::evaluate : Answer::train,
              .epoch_number = std::uint32_t(epoch_),
              .lease = lease_base_ + std::int64_t(leases_.size()) - 1,
              .step = std::uint32_t(test ? number : number / course_.parts),
              .part = std::uint32_t(test ? 0 : number % course_.parts),
              .sums = sums_};
  if (!test) {
    const int step = int(made.step), part = int(made.part);
    made.extra = std::uint32_t(rested_[std::size_t(worker)]);
    made.mean_over = std::uint32_t(combines(job_.policy) ? course_.batch_samples(step)
                                                         : course_.part_samples(step, part));
  }
  if (worker == 0) set_text(made.text, take_note());
  waiting_[std::size_t(worker)].reset();
  answers_.emplace_back(worker, made);
}

void Coordinator::answer(int worker, Answer::Kind kind, std::string_view text) {
  Answer made{.kind = kind,
              .epoch_number = std::uint32_t(epoch_),
              .step = std::uint32_t(last_step_ + 1),
              .evaluated = evaluates_,
              .buffers = merges_,
              .sums = sums_};
  if (worker == 0 && text.empty()) set_text(made.text, take_note());
  if (!text.empty()) set_text(made.text, text);
  waiting_[std::size_t(worker)].reset();
  answers_.emplace_back(worker, made);
}

void Coordinator::take_result(int worker, const Ask& ask) {
  if (ask.lease < lease_base_) return;
  const std::size_t place = std::size_t(ask.lease - lease_base_);
  CHECK(place < leases_.size() && leases_[place].worker == worker, "worker {} has no lease {}",
        worker, ask.lease);
  Lease& lease = leases_[place];
  if (std::exchange(lease.done, true)) return;
  (lease.test ? tests_ : parts_)[std::size_t(lease.number)] = Part::done;
  if (lease.test) {
    sums_.test_loss += ask.loss;
    sums_.test_correct += ask.correct;
    sums_.test_flip_correct += ask.flip_correct;
    sums_.test_shift_correct += ask.shift_correct;
    sums_.test_samples += ask.samples;
    return;
  }
  sums_.loss += ask.loss;
  sums_.correct += ask.correct;
  sums_.samples += ask.samples;
  sums_.seen += ask.samples;
  sums_.missing -= ask.samples;
  if (ask.samples > 0) watch(double(ask.loss) * kLossUnit / double(ask.samples));
}

void Coordinator::watch(double loss) {
  const auto move = guard_.see(loss);
  if (!move) return;
  Order order{.kind = move->kind == LossGuard::Move::Kind::keep ? Order::keep : Order::go_back};
  if (order.kind == Order::go_back) {
    order.generation = ++generation_;
    note(fmt::format("guard: {}; back to the last good weights, policy {}", move->reason,
                     move->policy));
  }
  set_text(order.policy, move->policy);
  orders_.push_back(order);
}

void Coordinator::ask(int worker, const Ask& ask, std::vector<float> buffers) {
  if (!alive_[std::size_t(worker)]) return;
  CHECK(!waiting_[std::size_t(worker)], "worker {} asks twice", worker);
  waiting_[std::size_t(worker)] = ask;
  if (ask.stop && !std::exchange(stopping_, true)) {
    // To the end of the last step that somebody has begun, so that it can go on from there.
    int last = first_step_ - 1;
    for (const Lease& lease : leases_)
      if (!lease.test) last = std::max(last, int(lease.number / course_.parts));
    last_step_ = phase_ == Phase::train ? last : last_step_;
  }
  if (const std::string failure = text_in(ask.failure); !failure.empty()) {
    const std::size_t orders = orders_.size();
    watch(std::numeric_limits<double>::quiet_NaN());
    if (orders_.size() == orders) return fail(failure);
  }
  if (ask.lease >= 0) take_result(worker, ask);
  if (ask.kind == Ask::arrive) {
    rested_[std::size_t(worker)] = 1;
    buffers_[std::size_t(worker)] = std::move(buffers);
    figures_[std::size_t(worker)] = text_in(ask.figures);
  }
  settle();
}

void Coordinator::lost(int worker, const std::string& why) {
  if (!std::exchange(alive_[std::size_t(worker)], 0)) return;
  waiting_[std::size_t(worker)].reset();
  int given_back = 0;
  for (Lease& lease : leases_)
    if (lease.worker == worker && !lease.done) {
      lease.done = true;
      (lease.test ? tests_ : parts_)[std::size_t(lease.number)] = Part::open;
      given_back += !lease.test;
    }
  note(fmt::format("worker {} is lost ({}); {} of its parts of a batch are given to others", worker,
                   why, given_back));
  settle();
}

std::string Coordinator::take_note() {
  if (notes_.empty()) return {};
  std::string first = std::move(notes_.front());
  notes_.pop_front();
  return first;
}

void Coordinator::fail(const std::string& why) {
  phase_ = Phase::over;
  for (std::size_t i = 0; i < alive_.size(); ++i)
    if (alive_[i]) answer(int(i), Answer::failed, why);
}

void Coordinator::settle() {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < alive_.size(); ++i)
      if (alive_[i] && waiting_[i]) changed |= settle_worker(int(i));
    if (phase_ == Phase::train && all_done(parts_) && everybody(Ask::arrive)) {
      come_together();
      changed = true;
    }
    if (phase_ == Phase::evaluate && all_done(tests_) && everybody(Ask::next)) {
      end_epoch();
      changed = true;
    }
  }
}

// False where the worker must wait for others.
bool Coordinator::settle_worker(int worker) {
  const Ask::Kind kind = Ask::Kind(waiting_[std::size_t(worker)]->kind);
  if (phase_ == Phase::train) {
    if (const auto part = next_part(worker)) {
      lease(worker, *part, false);
      return true;
    }
    if (kind != Ask::next) return false;
    answer(worker, Answer::rest);
    return true;
  }
  if (phase_ == Phase::evaluate && evaluates_) {
    const auto open = std::find(tests_.begin(), tests_.end(), Part::open);
    if (open == tests_.end()) return false;
    lease(worker, open - tests_.begin(), true);
    return true;
  }
  if (phase_ == Phase::told) {
    if (worker != 0) return false;  // when worker 0 is ready, all are
    const bool over = epoch_ >= course_.epochs || stopping_;
    if (!over) {
      begin_epoch();
      return true;
    }
    phase_ = Phase::over;
    for (std::size_t i = 0; i < alive_.size(); ++i)
      if (alive_[i]) answer(int(i), epoch_ >= course_.epochs ? Answer::finished : Answer::stopped);
    return true;
  }
  return false;
}

void Coordinator::come_together() {
  merged_.assign(job_.buffers, 0.0f);
  int count = 0;
  for (std::size_t i = 0; i < alive_.size(); ++i) {
    if (!alive_[i]) continue;
    CHECK(buffers_[i].size() == merged_.size(), "buffers of {}, not {}", buffers_[i].size(),
          merged_.size());
    for (std::size_t k = 0; k < merged_.size(); ++k) merged_[k] += buffers_[i][k];
    ++count;
  }
  for (float& value : merged_) value /= float(count);
  const bool cut_short = last_step_ < course_.steps() - 1;
  phase_ = cut_short ? Phase::over : Phase::evaluate;
  merges_ = true;
  for (std::size_t i = 0; i < alive_.size(); ++i)
    if (alive_[i]) answer(int(i), cut_short ? Answer::stopped : Answer::merged);
  merges_ = false;
}

void Coordinator::end_epoch() {
  phase_ = Phase::told;
  for (std::size_t i = 0; i < alive_.size(); ++i)
    if (alive_[i]) answer(int(i), Answer::epoch);
  ++epoch_;
  first_step_ = 0;
}

}  // namespace convoy
