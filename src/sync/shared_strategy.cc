#include "sync/shared_strategy.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/part.h"
#include "kernels/parallel.h"
#include "sync/reduce_kernels.h"

namespace convoy {
namespace {

constexpr std::size_t kLine = 16;        // floats of a cache line: parts are whole lines
constexpr std::size_t kBlock = 1 << 13;  // floats that are summed and updated while in cache

}  // namespace

SharedStrategy::SharedStrategy(CommTask& comm, HostMemory& memory, Optimizer& optimizer,
                               std::span<float> gradients)
    : comm_(comm), optimizer_(optimizer), gradients_(gradients) {
  CHECK(optimizer.elementwise(), "an update that cannot be cut into parts");
  const Range lines = part_of((gradients.size() + kLine - 1) / kLine, comm.size(), comm.rank());
  begin_ = std::min(lines.begin * kLine, gradients.size());
  end_ = std::min((lines.begin + lines.count) * kLine, gradients.size());
  comm_.run([&](Communicator& communicator) {
    const auto* const own = reinterpret_cast<const std::byte*>(gradients.data());
    const std::span<std::byte> veto = memory.allocate(sizeof(std::int32_t));
    for (int worker = 0; worker < comm_.size(); ++worker) {
      sources_.push_back(memory.in_region_of(worker, own));
      vetoes_.push_back(reinterpret_cast<std::int32_t*>(memory.in_region_of(worker, veto.data())));
    }
    own_veto_ = vetoes_[std::size_t(comm_.rank())];
    communicator.barrier();
  });
}

void SharedStrategy::end_step(const UpdateRate& rate, std::vector<ArenaRange> moved) {
  CHECK(moved.empty(), "weights moved before their gradients were summed");
  rate_ = rate;
  // Barriers order these writes and reads, and those of the gradients. A veto is read between the
  // first and the second barrier of a step, and written after the second.
  *own_veto_ = std::exchange(veto_, false);
  job_ = comm_.post([this](Communicator& communicator) {
    communicator.barrier();
    vetoed_ = std::any_of(vetoes_.begin(), vetoes_.end(),
                          [](const std::int32_t* veto) { return *veto != 0; });
  });
}

void SharedStrategy::await(const Bucket&) {
  if (job_ == 0) return;
  comm_.wait(std::exchange(job_, 0));
  due_ = true;
}

void SharedStrategy::apply(const Bucket&) {
  if (!std::exchange(due_, false)) return;
  if (!vetoed_) update_part();
  comm_.run([](Communicator& communicator) { communicator.barrier(); });
}

void SharedStrategy::update_part() {
  parallel_for(end_ - begin_, kBlock, [&](std::size_t from, std::size_t to) {
    std::vector<const std::byte*> sources(sources_.size());
    for (std::size_t at = begin_ + from; at < begin_ + to; at += kBlock) {
      const std::size_t stop = std::min(begin_ + to, at + kBlock);
      for (std::size_t i = 0; i < sources.size(); ++i)
        sources[i] = sources_[i] + at * sizeof(float);
      std::byte* const target = reinterpret_cast<std::byte*>(gradients_.data() + at);
      combine_all(Element::f32, Reduction::sum, 1.0, sources, std::span(&target, 1), stop - at);
      optimizer_.update(at, stop, rate_.rate, rate_.update);
    }
  });
}

}  // namespace convoy
