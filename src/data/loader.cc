#include "data/loader.h"

#include <omp.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/part.h"
#include "base/rng.h"
#include "data/augment.h"

namespace convoy {
namespace {

// The order in which an epoch visits the samples: Fisher-Yates from the end.
std::vector<std::uint32_t> epoch_order(const Dataset& dataset, const LoaderOptions& options,
                                       std::uint32_t epoch) {
  const std::size_t size = dataset.size();
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), std::uint32_t(dataset.first()));
  if (!options.shuffle) return order;
  Rng rng(options.seed, Purpose::shuffle, epoch);
  for (std::size_t i = size; i > 1; --i)
    std::swap(order[i - 1], order[rng.below(std::uint32_t(i))]);
  return order;
}

void check_options(const Dataset& dataset, const LoaderOptions& options) {
  if (options.batch < 1) throw ConfigError("batch is {}: expected 1 or more", options.batch);
  if (options.threads < 1)
    throw ConfigError("loader threads are {}: expected 1 or more", options.threads);
  if (options.prefetch < 1)
    throw ConfigError("prefetch is {}: expected 1 or more", options.prefetch);
  CHECK(dataset.size() <= 0xFFFFFFFFu, "{} samples are more than 32 bits count", dataset.size());
}

void check_share(const BatchShare& share) {
  CHECK(share.size >= 1 && 0 <= share.from && share.from <= share.to && share.to <= share.size,
        "parts {} to {} of {}", share.from, share.to, share.size);
}

// A step's batch, or what went wrong with it.
struct Slot {
  bool ready = false;
  Batch batch;
  std::exception_ptr error;
};

}  // namespace

// Steps are claimed in order by the workers and land in a ring of `prefetch` slots: step s in slot
// s % prefetch. A step is claimed only when the slot's former step has been taken, which bounds
// what is ready.
struct Loader::State {
  State(const Dataset& set, LoaderOptions given)
      : dataset(set), options(std::move(given)), augment(set, options.augment, options.seed) {}
  ~State() { stop(); }

  void start(std::uint32_t new_epoch, int first_step);
  void stop();
  void work();
  Batch prepare(int step) const;
  Range of_part(std::size_t count, int step) const;
  std::vector<std::uint32_t> samples(int step, const BatchShare& share) const;
  Batch make(std::uint32_t of_epoch, std::vector<std::uint32_t> samples) const;

  const Dataset& dataset;
  LoaderOptions options;  // the share changes while no worker runs
  const Augment augment;

  // Written by start() while no worker runs.
  std::uint32_t epoch = 0;
  int steps = 0;
  std::vector<std::uint32_t> order;
  std::vector<std::thread> workers;

  std::mutex mutex;  // guards what follows
  std::condition_variable slot_ready, slot_free;
  std::vector<Slot> slots;
  int claimed = 0;  // steps below are taken by workers
  int taken = 0;    // steps below have been returned by next()
  bool stopping = false;
};

void Loader::State::start(std::uint32_t new_epoch, int first_step) {
  stop();
  CHECK(first_step >= 0 && first_step <= steps, "first step {} of {}", first_step, steps);
  epoch = new_epoch;
  order = epoch_order(dataset, options, epoch);
  slots.clear();
  slots.resize(std::size_t(options.prefetch));
  claimed = taken = first_step;
  stopping = false;
  if (dataset.in_memory()) return;
  const int wanted = std::min(options.threads, steps - first_step);
  for (int i = 0; i < wanted; ++i) workers.emplace_back([this] { work(); });
}

void Loader::State::stop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  slot_free.notify_all();
  for (std::thread& worker : workers) worker.join();
  workers.clear();
}

void Loader::State::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    slot_free.wait(
        lock, [&] { return stopping || claimed >= steps || claimed < taken + options.prefetch; });
    if (stopping || claimed >= steps) return;
    const int step = claimed++;
    lock.unlock();
    Slot result;
    try {
      result.batch = prepare(step);
    } catch (...) {
      result.error = std::current_exception();
    }
    result.ready = true;
    lock.lock();
    slots[std::size_t(step % options.prefetch)] = std::move(result);
    slot_ready.notify_one();
  }
}

// In an epoch over parts, step `step` visits these of a part's `count` samples.
Range Loader::State::of_part(std::size_t count, int step) const {
  const std::size_t all = std::size_t(steps), one = std::size_t(step);
  const std::size_t begin = count * one / all;
  return {begin, count * (one + 1) / all - begin};
}

Batch Loader::State::prepare(int step) const {
  if (options.parts > 0) {
    const Range range = of_part(order.size(), step);
    const auto first = order.begin() + std::ptrdiff_t(range.begin);
    return make(epoch, {first, first + std::ptrdiff_t(range.count)});
  }
  return make(epoch, samples(step, options.share));
}

std::vector<std::uint32_t> Loader::State::samples(int step, const BatchShare& share) const {
  const std::size_t begin = std::size_t(step) * std::size_t(options.batch);
  const std::size_t count = std::min(std::size_t(options.batch), order.size() - begin);
  const std::size_t first = begin + share.begin(count, share.from);
  const std::size_t last = begin + share.begin(count, share.to);
  return {order.begin() + std::ptrdiff_t(first), order.begin() + std::ptrdiff_t(last)};
}

Batch Loader::State::make(std::uint32_t of_epoch, std::vector<std::uint32_t> samples) const {
  const std::size_t pixels = dataset.shape().count();
  Batch batch;
  batch.epoch = of_epoch;
  batch.samples = std::move(samples);
  batch.labels.reserve(batch.samples.size());
  batch.images.resize(batch.samples.size() * pixels);
  const std::size_t before = dataset.first();
  for (const std::uint32_t sample : batch.samples)
    batch.labels.push_back(dataset.label(sample - before));
  const auto fill = [&](std::size_t from, std::size_t to) {
    std::vector<std::uint8_t> image(pixels);
    for (std::size_t i = from; i < to; ++i) {
      dataset.read(batch.samples[i] - before, image);
      augment.apply(image, of_epoch, batch.samples[i],
                    std::span(batch.images).subspan(i * pixels, pixels));
    }
  };
  if (!dataset.in_memory()) {
    fill(0, batch.samples.size());
    return batch;
  }
#pragma omp parallel
  {
    const std::size_t thread = std::size_t(omp_get_thread_num());
    const std::size_t team = std::size_t(omp_get_num_threads());
    fill(batch.samples.size() * thread / team, batch.samples.size() * (thread + 1) / team);
  }
  return batch;
}

Loader::Loader(const Dataset& dataset, LoaderOptions options) {
  check_options(dataset, options);
  check_share(options.share);
  state_ = std::make_unique<State>(dataset, std::move(options));
  const std::size_t batch = std::size_t(state_->options.batch);
  const std::size_t samples = state_->options.parts > 0 ? dataset.whole_size() : dataset.size();
  state_->steps = int((samples + batch - 1) / batch);
}

Loader::~Loader() = default;

int Loader::steps_per_epoch() const { return state_->steps; }

int Loader::batch_at(int step) const {
  if (const int parts = state_->options.parts; parts > 0) {
    std::size_t sum = 0;
    for (int part = 0; part < parts; ++part) {
      const Range own = part_of(state_->dataset.whole_size(), parts, part);
      sum += state_->of_part(own.count, step).count;
    }
    return int(sum);
  }
  const std::size_t batch = std::size_t(state_->options.batch);
  return int(std::min(batch, state_->dataset.size() - std::size_t(step) * batch));
}

void Loader::set_share(const BatchShare& share) {
  check_share(share);
  state_->stop();
  state_->options.share = share;
}

void Loader::start_epoch(std::uint32_t epoch, int first_step) { state_->start(epoch, first_step); }

std::vector<std::uint32_t> Loader::samples_of(std::uint32_t epoch, int step,
                                              const BatchShare& share) {
  State& state = *state_;
  CHECK(step >= 0 && step < state.steps && state.options.parts == 0, "step {} of {}", step,
        state.steps);
  check_share(share);
  if (state.epoch != epoch || state.order.empty()) {
    state.stop();
    state.epoch = epoch;
    state.order = epoch_order(state.dataset, state.options, epoch);
  }
  return state.samples(step, share);
}

Batch Loader::part(std::uint32_t epoch, int step, const BatchShare& share) {
  return state_->make(epoch, samples_of(epoch, step, share));
}

Batch Loader::batch_of(std::uint32_t epoch, std::vector<std::uint32_t> samples) const {
  return state_->make(epoch, std::move(samples));
}

std::optional<Batch> Loader::next() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (state.slots.empty() || state.taken >= state.steps) return std::nullopt;
  if (state.dataset.in_memory()) return state.prepare(state.taken++);
  Slot& slot = state.slots[std::size_t(state.taken % state.options.prefetch)];
  state.slot_ready.wait(lock, [&] { return slot.ready; });
  // A step that failed stays where it is: asking again gives the same answer.
  if (slot.error) std::rethrow_exception(slot.error);
  Batch batch = std::move(slot.batch);
  slot = Slot{};
  ++state.taken;
  lock.unlock();
  state.slot_free.notify_one();
  return batch;
}

}  // namespace convoy
