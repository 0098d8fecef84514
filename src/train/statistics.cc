#include "train/statistics.h"

#include <algorithm>

namespace convoy {

void WorkerStatistics::sum(std::span<double> values) {
  const std::size_t count = values.size(), size = std::size_t(workers_.size());
  all_.resize(count * size);
  std::copy(values.begin(), values.end(),
            all_.begin() + std::ptrdiff_t(count * std::size_t(workers_.rank())));
  workers_.comm().run([&](Communicator& communicator) {
    communicator.all_gather(std::as_writable_bytes(std::span(all_)), Element::i64);
  });
  std::fill(values.begin(), values.end(), 0.0);
  for (std::size_t worker = 0; worker < size; ++worker)
    for (std::size_t i = 0; i < count; ++i) values[i] += all_[worker * count + i];
}

}  // namespace convoy
