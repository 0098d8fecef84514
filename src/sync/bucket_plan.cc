#include "sync/bucket_plan.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"

namespace convoy {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::array<std::size_t, 6> kBucketBytes = {kMiB / 4,  kMiB,      4 * kMiB,
                                                     16 * kMiB, 64 * kMiB, ~std::size_t{0}};
constexpr std::size_t kSliceBytes = 4 * kMiB;

struct Moments {
  double ready_s = 0;
  double needed_s = std::numeric_limits<double>::infinity();
};

// Of each bucket: ready when its last layer is, needed when its first is.
std::vector<Moments> bucket_moments(std::span<const LayerRange> layers, const StepTimes& times,
                                    std::span<const Bucket> buckets) {
  std::vector<Moments> moments(buckets.size());
  std::size_t bucket = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].begin >= buckets[bucket].end) ++bucket;
    moments[bucket].ready_s = std::max(moments[bucket].ready_s, times.layers[i].ready_s);
    moments[bucket].needed_s = std::min(moments[bucket].needed_s, times.layers[i].needed_s);
  }
  return moments;
}

std::vector<Slice> cut(std::span<const Bucket> buckets, std::size_t slice_bytes) {
  const std::size_t most = std::max<std::size_t>(slice_bytes / sizeof(float), 1);
  std::vector<Slice> slices;
  for (const Bucket& bucket : buckets)
    for (std::size_t begin = bucket.begin; begin < bucket.end; begin += most)
      slices.push_back({bucket.id, begin, std::min(begin + most, bucket.end)});
  return slices;
}

double cost_s(const Slice& slice, const StepTimes& times) {
  return times.alpha_s + double((slice.end - slice.begin) * sizeof(float)) * times.per_byte_s;
}

// Sends, whenever the link is free, that slice among those which are ready whose layer is needed
// first.
std::vector<Slice> by_need(std::vector<Slice> slices, std::span<const Moments> moments,
                           const StepTimes& times) {
  std::vector<Slice> order;
  double now = 0;
  while (!slices.empty()) {
    auto best = slices.end();
    double next_ready = std::numeric_limits<double>::infinity();
    for (auto slice = slices.begin(); slice != slices.end(); ++slice) {
      const Moments& own = moments[std::size_t(slice->bucket)];
      next_ready = std::min(next_ready, own.ready_s);
      if (own.ready_s > now) continue;
      if (best == slices.end() || own.needed_s < moments[std::size_t(best->bucket)].needed_s)
        best = slice;
    }
    if (best == slices.end()) {
      now = next_ready;
      continue;
    }
    now += cost_s(*best, times);
    order.push_back(*best);
    slices.erase(best);
  }
  return order;
}

// The link carries the slices in order, none before it is ready; then forward runs and stands still
// wherever a bucket is not there yet.
double predict_s(const BucketPlan& plan, std::span<const Moments> moments, const StepTimes& times) {
  std::vector<double> arrived(plan.buckets.size(), 0.0);
  double link = 0;
  for (const Slice& slice : plan.order) {
    const std::size_t bucket = std::size_t(slice.bucket);
    link = std::max(link, moments[bucket].ready_s) + cost_s(slice, times);
    arrived[bucket] = link;
  }
  double late = 0;  // by how much forward is behind
  std::vector<std::size_t> needed(plan.buckets.size());
  for (std::size_t i = 0; i < needed.size(); ++i) needed[i] = i;
  std::sort(needed.begin(), needed.end(), [&](std::size_t a, std::size_t b) {
    return moments[a].needed_s < moments[b].needed_s;
  });
  for (const std::size_t bucket : needed)
    late = std::max(late, arrived[bucket] - times.backward_s - moments[bucket].needed_s);
  return times.backward_s + times.forward_s + late;
}

}  // namespace

std::vector<LayerRange> layer_ranges(const Parameters& parameters) {
  std::vector<LayerRange> layers;
  for (const Parameter& parameter : parameters.list()) {
    if (layers.empty() || layers.back().node != parameter.spec.node)
      layers.push_back({parameter.spec.node, parameter.begin, parameter.begin});
    layers.back().end = parameter.end;
  }
  return layers;
}

BucketPlan simple_plan(std::span<const LayerRange> layers, std::size_t bucket_bytes) {
  BucketPlan plan;
  for (const LayerRange& layer : layers) {
    const bool full = plan.buckets.empty() || plan.buckets.back().end - plan.buckets.back().begin >=
                                                  bucket_bytes / sizeof(float);
    if (full) plan.buckets.push_back({int(plan.buckets.size()), layer.begin, layer.begin});
    plan.buckets.back().end = layer.end;
  }
  plan.order = cut(plan.buckets, ~std::size_t{0});
  return plan;
}

BucketPlan best_plan(std::span<const LayerRange> layers, const StepTimes& times) {
  CHECK(layers.size() == times.layers.size(), "{} layers, times of {}", layers.size(),
        times.layers.size());
  BucketPlan best;
  best.step_s = std::numeric_limits<double>::infinity();
  for (const std::size_t bucket_bytes : kBucketBytes) {
    BucketPlan plan = simple_plan(layers, bucket_bytes);
    const std::vector<Moments> moments = bucket_moments(layers, times, plan.buckets);
    const auto consider = [&](std::vector<Slice> order) {
      plan.order = std::move(order);
      plan.step_s = predict_s(plan, moments, times);
      if (plan.step_s < best.step_s * 0.999) best = plan;
    };
    consider(cut(plan.buckets, ~std::size_t{0}));
    consider(by_need(cut(plan.buckets, kSliceBytes), moments, times));
  }
  return best;
}

}  // namespace convoy
