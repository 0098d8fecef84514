// Batches of a data set, shuffled by (seed, epoch): prefetched on threads of its own or, of data in
// memory, made when asked for on the engine's threads, which a thread beside them would only hold
// up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/batch.h"
#include "data/dataset.h"

namespace convoy {

struct AugmentOptions {
  int crop_padding = 0;    // random crop after padding by this many pixels on each side,
  bool reflect = false;    // with the image's own pixels, mirrored at its edge, instead of black
  bool flip = false;       // mirror left-right with probability 1/2
  bool alternate = false;  // with flip: by chance in the first epoch, then every other epoch
};

// The part of each global batch that a loader makes: parts [from, to) when a batch is cut into
// `size` parts that differ by at most one sample. Loaders whose shares cover [0, size) visit every
// sample once an epoch.
struct BatchShare {
  int from = 0, to = 1, size = 1;

  // Samples before part `part` of a batch of so many.
  std::size_t begin(std::size_t count, int part) const {
    return count * std::size_t(part) / std::size_t(size);
  }
  bool operator==(const BatchShare&) const = default;
};

struct LoaderOptions {
  int batch = 128;  // of all loaders together
  bool shuffle = true;
  std::uint64_t seed = 1;
  BatchShare share = {};
  // Where each loader has only its part of the set (Dataset::first), of so many: an epoch visits
  // the part in as many steps as the whole set would need, in an order of its own.
  int parts = 0;
  AugmentOptions augment = {};
  int threads = 1;   // that prepare batches ahead, unless the data are in memory
  int prefetch = 4;  // batches ready at most
};

// One epoch at a time: start_epoch(e), then next() until it returns nullopt. The last batch may be
// smaller, and a share of it empty. The batches of an epoch depend only on (seed, epoch, share),
// not on threads or on earlier epochs.
class Loader {
 public:
  Loader(const Dataset& dataset, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int steps_per_epoch() const;
  int batch_at(int step) const;  // samples of the step, of all loaders together
  // From the next start_epoch() on.
  void set_share(const BatchShare& share);
  // `first_step` skips the steps before it without preparing them (resume in the middle of an
  // epoch).
  void start_epoch(std::uint32_t epoch, int first_step = 0);
  std::optional<Batch> next();
  // Any part of any step, without start_epoch(): for those who are told what is next. By one task.
  Batch part(std::uint32_t epoch, int step, const BatchShare& share);
  // Its samples.
  std::vector<std::uint32_t> samples_of(std::uint32_t epoch, int step, const BatchShare& share);
  // These samples as a batch of `epoch` would have them.
  Batch batch_of(std::uint32_t epoch, std::vector<std::uint32_t> samples) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy
