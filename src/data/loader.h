// Batches of a data set, shuffled by (seed, epoch): prefetched on threads of its own or, of data in
// memory, made when asked for on the engine's threads, which a thread beside them would only hold
// up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "data/batch.h"
#include "data/dataset.h"

namespace convoy {

struct AugmentOptions {
  int crop_padding = 0;    // random crop after padding by this many pixels on each side,
  bool reflect = false;    // with the image's own pixels, mirrored at its edge, instead of black
  bool flip = false;       // mirror left-right with probability 1/2
  bool alternate = false;  // with flip: by chance in the first epoch, then every other epoch
};

struct LoaderOptions {
  int batch = 128;  // global batch over all ranks
  bool shuffle = true;
  std::uint64_t seed = 1;
  int rank =
      0;  // this loader's share of each global batch is one of `size`: exactly once per epoch,
  int size = 1;  // shares differ by at most one sample
  AugmentOptions augment = {};
  int threads = 1;   // that prepare batches ahead, unless the data are in memory
  int prefetch = 4;  // batches ready at most
};

// One epoch at a time: start_epoch(e), then next() until it returns nullopt. The last batch may be
// smaller. The batches of an epoch depend only on (seed, epoch, rank, size), not on threads or on
// earlier epochs.
class Loader {
 public:
  Loader(const Dataset& dataset, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int steps_per_epoch() const;
  // `first_step` skips the steps before it without preparing them (resume in the middle of an
  // epoch).
  void start_epoch(std::uint32_t epoch, int first_step = 0);
  std::optional<Batch> next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy
