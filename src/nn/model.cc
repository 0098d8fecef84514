#include "nn/model.h"

#include <spdlog/spdlog.h>
#include <sys/mman.h>

#include "base/check.h"
#include "kernels/amx/family.h"
#include "kernels/onednn/family.h"
#include "kernels/parallel.h"
#include "nn/empty_pass.h"
#include "nn/graph.h"

namespace convoy {
namespace {

constexpr std::size_t kHugePage = std::size_t(2) << 20;

std::unique_ptr<Family> make_family(const ModelOptions& options) {
  if (options.precision == Precision::f32)
    return make_onednn_family({.fixed_algorithms = options.fixed_algorithms});
  if (amx::is_usable()) return amx::make_family();
  if (amx_avx512::is_usable()) return amx_avx512::make_family();
  spdlog::warn("this CPU does not multiply bf16: it works, but is not faster than f32");
  return amx_avx2::make_family();
}

}  // namespace

// Activations and gradients of all graphs of a model, which never run at the same time.
class Model::Arena {
 public:
  ~Arena() { release(); }

  std::byte* reserve(std::size_t bytes) {
    if (bytes > bytes_) {
      release();
      const std::size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
      void* memory = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) throw std::bad_alloc();
      ::madvise(memory, rounded, MADV_HUGEPAGE);
      memory_ = static_cast<std::byte*>(memory);
      bytes_ = rounded;
    }
    return memory_;
  }

 private:
  void release() {
    if (memory_) ::munmap(memory_, bytes_);
    memory_ = nullptr;
    bytes_ = 0;
  }
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

Model::Model(Network network, ModelOptions options)
    : network_(std::move(network)), options_(options), arena_(std::make_unique<Arena>()) {
  set_threads(options_.threads);
  family_ = make_family(options_);
  parameters_ = std::make_unique<Parameters>(network_, *family_, options_.batch);
  parameters_->initialize(network_, options_.seed);
}

Model::~Model() = default;

Graph& Model::graph(int batch, bool training) {
  std::unique_ptr<Graph>& graph = graphs_[{batch, training}];
  if (!graph)
    graph = std::make_unique<Graph>(network_, *parameters_, *family_,
                                    GraphOptions{.batch = batch,
                                                 .tuning_batch = options_.batch,
                                                 .training = training,
                                                 .seed = options_.seed,
                                                 .label_smoothing = options_.label_smoothing,
                                                 .exchange = options_.exchange});
  graph->time_layers(profiling_);
  last_ = graph.get();
  return *graph;
}

Outcome Model::forward(const Batch& batch, const NodeHook& before, int mean_over) {
  if (batch.size() == 0) {
    if (!empty_)
      empty_ = std::make_unique<EmptyPass>(network_, *parameters_, *family_, options_.exchange);
    last_ = nullptr;
    empty_->forward(before);
    return {};
  }
  Graph& chosen = graph(batch.size(), true);
  const LossSums sums =
      chosen.forward(batch, arena_->reserve(chosen.arena_bytes()), before, mean_over);
  return {sums.loss, sums.correct, batch.size()};
}

std::vector<ArenaRange> Model::backward(const NodeHook& done, WeightUpdate* update) {
  CHECK(last_ || empty_, "backward without forward");
  if (!last_) {
    empty_->backward(done);
    return {};
  }
  return last_->backward(arena_->reserve(last_->arena_bytes()), done, update);
}

Outcome Model::evaluate(const Batch& batch) {
  if (batch.size() == 0) return {};
  Graph& chosen = graph(batch.size(), false);
  const LossSums sums = chosen.forward(batch, arena_->reserve(chosen.arena_bytes()), {}, 0);
  return {sums.loss, sums.correct, batch.size()};
}

void Model::profile(bool on) { profiling_ = on; }

std::vector<LayerTime> Model::layer_times() const {
  std::vector<LayerTime> times;
  if (last_ == nullptr) return times;
  for (const Graph::Timing& timing : last_->timings())
    times.push_back({timing.node, timing.forward_s, timing.backward_s, timing.split});
  return times;
}

std::span<const float> Model::logits() const {
  CHECK(last_ || empty_, "logits before forward");
  return last_ ? last_->logits() : std::span<const float>{};
}

}  // namespace convoy
