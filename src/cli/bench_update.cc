#include "cli/bench_update.h"

#include <algorithm>

#include "base/clock.h"
#include "base/float_arena.h"
#include "cli/bench_servers.h"
#include "kernels/parallel.h"
#include "sync/ps/shard.h"

namespace convoy {
namespace {

constexpr float kRate = 1e-3f;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

class Triad {
 public:
  explicit Triad(std::size_t count) : a_(count), b_(count), c_(count) {
    std::fill(b_.span().begin(), b_.span().end(), 1.0f);
    std::fill(c_.span().begin(), c_.span().end(), 2.0f);
  }
  void run() {
    float* const a = a_.span().data();
    const float* const b = b_.span().data();
    const float* const c = c_.span().data();
    parallel_for(a_.span().size(), 1 << 15, [&](std::size_t begin, std::size_t end) {
#pragma omp simd
      for (std::size_t i = begin; i < end; ++i) a[i] = b[i] + 0.5f * c[i];
    });
  }
  double bytes() { return 4.0 * sizeof(float) * double(a_.span().size()); }

 private:
  FloatArena a_, b_, c_;
};

// A shard and the gradients of several workers, all of them received.
class Updates {
 public:
  Updates(const UpdateOptions& options, int workers, float momentum)
      : momentum_(momentum),
        job_(bench_job({.bytes = options.bytes,
                        .slice_bytes = options.slice_bytes,
                        .workers = workers,
                        .wire = options.wire,
                        .momentum = momentum})),
        shard_(job_, 0),
        code_(make_wire_code(options.wire)) {
    for (int worker = 0; worker < workers; ++worker)
      for (const ServerSlice& slice : job_.layout.slices) {
        std::vector<float> values(slice.count(), 1e-3f), unsaid(slice.count());
        FloatArena& message =
            messages_.emplace_back(code_ ? code_->words(slice.count()) : slice.count());
        if (code_)
          code_->encode(values, unsaid,
                        {reinterpret_cast<std::uint32_t*>(message.span().data()), message.size()});
        else
          std::copy(values.begin(), values.end(), message.span().begin());
        message_bytes_ += 4.0 * double(message.size());
      }
  }

  void run() {
    ++updates_;
    const std::size_t slices = job_.layout.slices.size();
    std::vector<ServerShard::Gradient> gradients(std::size_t(job_.workers));
    for (std::size_t i = 0; i < slices; ++i) {
      for (std::size_t worker = 0; worker < gradients.size(); ++worker)
        gradients[worker] = {.message = std::as_bytes(messages_[worker * slices + i].span()),
                             .factor = 1 / float(job_.workers)};
      shard_.update(job_.layout.slices[i], gradients, {.rate = kRate, .update = updates_});
    }
  }
  double bytes() const {
    const double arena = sizeof(float) * double(job_.layout.arena);
    return message_bytes_ + (momentum_ > 0 ? 4 : 2) * arena;
  }
  UpdateRow row(double seconds) const {
    return {.workers = job_.workers,
            .momentum = momentum_,
            .seconds = seconds,
            .gb_per_s = bytes() / seconds * 1e-9};
  }

 private:
  float momentum_;
  ServerJob job_;
  ServerShard shard_;
  std::unique_ptr<WireCode> code_;
  std::vector<FloatArena> messages_;  // by worker, by slice
  double message_bytes_ = 0;
  std::int64_t updates_ = 0;
};

}  // namespace

UpdateRates measure_updates(const UpdateOptions& options) {
  Triad triad(options.bytes / sizeof(float));
  std::vector<std::unique_ptr<Updates>> sides;
  for (const auto& [workers, momentum] : {std::pair{1, 0.0f}, {1, 0.9f}, {2, 0.9f}, {4, 0.9f}})
    sides.push_back(std::make_unique<Updates>(options, workers, momentum));
  std::vector<double> triad_s;
  std::vector<std::vector<double>> side_s(sides.size());
  const auto timed = [](const auto& work) {
    const double start_s = now_s();
    work();
    return now_s() - start_s;
  };
  for (int turn = -1; turn < options.iterations; ++turn) {  // the first touches the pages
    const double own_s = timed([&] { triad.run(); });
    if (turn >= 0) triad_s.push_back(own_s);
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const double took_s = timed([&] { sides[i]->run(); });
      if (turn >= 0) side_s[i].push_back(took_s);
    }
  }
  UpdateRates rates{.triad_gb_per_s = triad.bytes() / median(triad_s) * 1e-9, .rows = {}};
  for (std::size_t i = 0; i < sides.size(); ++i)
    rates.rows.push_back(sides[i]->row(median(side_s[i])));
  return rates;
}

}  // namespace convoy
