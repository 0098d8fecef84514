#include "train/worker.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/parallel.h"

namespace convoy {
namespace {

// A number times zero is zero unless it is infinite or none; sums keep what is not.
bool all_finite(std::span<const float> values) {
  bool finite = true;
  parallel_for(values.size(), std::size_t{1} << 16, [&](std::size_t begin, std::size_t end) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = begin; i < end; ++i) sum += values[i] * 0.0f;
    if (!(sum == 0.0f)) __atomic_store_n(&finite, false, __ATOMIC_RELAXED);
  });
  return finite;
}

// The samples of `batch` from `begin` on.
Batch part_of_batch(const Batch& batch, std::size_t begin, std::size_t count) {
  const std::size_t pixels = batch.images.size() / std::max<std::size_t>(batch.labels.size(), 1);
  const auto cut = [&](const auto& list, std::size_t width) {
    const auto first = list.begin() + std::ptrdiff_t(begin * width);
    return std::decay_t<decltype(list)>(first, first + std::ptrdiff_t(count * width));
  };
  return {.images = cut(batch.images, pixels),
          .labels = cut(batch.labels, 1),
          .samples = cut(batch.samples, 1),
          .epoch = batch.epoch};
}

}  // namespace

Worker::Worker(Parts parts, std::span<const Bucket> buckets)
    : parts_(parts), layers_(layer_ranges(parts.model.parameters())) {
  const std::size_t nodes = parts_.model.network().nodes().size();
  end_.assign(nodes, 0);
  layer_of_.assign(nodes, -1);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    end_[std::size_t(layers_[i].node)] = layers_[i].end;
    layer_of_[std::size_t(layers_[i].node)] = int(i);
  }
  set_buckets(buckets);
}

void Worker::set_buckets(std::span<const Bucket> buckets) {
  buckets_.assign(buckets.begin(), buckets.end());
  bucket_of_.assign(parts_.model.network().nodes().size(), -1);
  std::size_t bucket = 0;
  for (const LayerRange& layer : layers_) {
    while (layer.begin >= buckets_[bucket].end) ++bucket;
    CHECK(layer.end <= buckets_[bucket].end, "a layer in two buckets");
    bucket_of_[std::size_t(layer.node)] = int(bucket);
  }
}

void Worker::make_current(const Bucket& bucket, NodeId node) {
  if (parts_.recording) parts_.recording->wait_for(node);
  parts_.strategy.await(bucket);
  parts_.time.charge(Phase::communication, node);
  parts_.strategy.apply(bucket);
  parts_.time.charge(Phase::update, node);
  if (parts_.recording) parts_.recording->wait_over();
}

void Worker::settle() {
  for (const Bucket& bucket : buckets_) make_current(bucket, kNoNode);
}

void Worker::before_forward(NodeId node, int samples) {
  parts_.time.charge(Phase::forward, computed_);
  computed_ = node;
  if (const int bucket = bucket_of_[std::size_t(node)]; bucket >= 0) {
    const double start_s = parts_.runtime.now_s();
    make_current(buckets_[std::size_t(bucket)], node);
    phase_start_s_ += parts_.runtime.now_s() - start_s;  // as if nothing had to be awaited
  }
  if (watching_)
    if (const int layer = layer_of_[std::size_t(node)]; layer >= 0)
      watched_.layers[std::size_t(layer)].needed_s = parts_.runtime.now_s() - phase_start_s_;
  if (parts_.pace) parts_.runtime.compute_s(parts_.pace->forward_s(node, samples));
}

void Worker::after_backward(NodeId node, const Batch& batch, int global) {
  if (parts_.pace) parts_.runtime.compute_s(parts_.pace->backward_s(node, batch.size()));
  parts_.time.charge(Phase::backward, node);
  if (watching_)
    watched_.layers[std::size_t(layer_of_[std::size_t(node)])].ready_s =
        parts_.runtime.now_s() - phase_start_s_;
  if (parts_.invariant) return;
  const std::size_t end = end_[std::size_t(node)];
  for (; ready_ < buckets_.size() && buckets_[ready_].end <= end; ++ready_) {
    check(buckets_[ready_], batch, global);
    parts_.strategy.bucket_ready(buckets_[ready_]);
    if (parts_.pace)
      parts_.runtime.compute_s(
          parts_.pace->message_s((buckets_[ready_].end - buckets_[ready_].begin) * sizeof(float)));
  }
}

void Worker::check(const Bucket& bucket, const Batch& batch, int global) {
  if (!parts_.checks_gradients) return;
  const std::span<float> gradients =
      parts_.model.parameters().gradients().subspan(bucket.begin, bucket.end - bucket.begin);
  if (!not_finite_ && all_finite(gradients)) return;
  if (!not_finite_) {
    std::string place = "the gradients";
    for (const Parameter& parameter : parts_.model.parameters().list())
      if (parameter.begin >= bucket.begin && parameter.end <= bucket.end &&
          !all_finite(parts_.model.parameters().gradients().subspan(
              parameter.begin, parameter.end - parameter.begin))) {
        place = "the gradient of " + parameter.spec.name;
        break;
      }
    not_finite_ = NotFinite{place, batch.epoch, batch.samples, global};
  }
  std::fill(gradients.begin(), gradients.end(), 0.0f);
}

Outcome Worker::compute(const Batch& batch, int global, const UpdateRate& rate,
                        std::vector<ArenaRange>* moved) {
  if (watching_) watched_.layers.resize(layers_.size());
  phase_start_s_ = parts_.runtime.now_s();
  computed_ = 0;
  const Outcome outcome = parts_.model.forward(
      batch, [&](NodeId node) { before_forward(node, batch.size()); }, global);
  if (watching_) watched_.forward_s = parts_.runtime.now_s() - phase_start_s_;
  parts_.time.charge(Phase::forward, computed_);
  if (!std::isfinite(outcome.loss_sum)) {
    not_finite_ = NotFinite{"the loss", batch.epoch, batch.samples, global};
    if (!parts_.checks_gradients) return {};  // nobody else waits for gradients
  }
  phase_start_s_ = parts_.runtime.now_s();
  WeightUpdate* update = moved ? parts_.strategy.in_backward(rate) : nullptr;
  std::vector<ArenaRange> ranges =
      parts_.model.backward([&](NodeId node) { after_backward(node, batch, global); }, update);
  if (moved) *moved = std::move(ranges);
  if (watching_) watched_.backward_s = parts_.runtime.now_s() - phase_start_s_;
  parts_.time.charge(Phase::backward);
  return not_finite_ ? Outcome{} : outcome;
}

Outcome Worker::step(const Batch& part, std::span<const int> shards, int global,
                     const UpdateRate& rate) {
  ready_ = 0;
  Outcome outcome;
  std::vector<ArenaRange> moved;
  if (parts_.invariant) {
    settle();
    std::size_t begin = 0;
    for (const int count : shards) {
      if (count > 0 && !not_finite_) {
        const Batch shard = part_of_batch(part, begin, std::size_t(count));
        parts_.invariant->begin_shard();
        const Outcome one = compute(shard, global, rate, nullptr);
        outcome.loss_sum += one.loss_sum;
        outcome.correct += one.correct;
        outcome.samples += one.samples;
        if (!not_finite_) check(buckets_.front(), shard, global);
        if (!not_finite_) parts_.invariant->end_shard(double(count) / global);
      }
      begin += std::size_t(count);
    }
  } else {
    const Batch nothing{.images = {}, .labels = {}, .samples = {}, .epoch = part.epoch};
    outcome = compute(not_finite_ ? nothing : part, global, rate, &moved);
    if (not_finite_ && !parts_.checks_gradients) return {};
  }
  if (not_finite_) parts_.strategy.veto();
  parts_.strategy.end_step(rate, std::move(moved));
  parts_.time.charge(Phase::update);
  return outcome;
}

}  // namespace convoy
