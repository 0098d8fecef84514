// The accuracy of a model on a data set: every sample once, the last, smaller batch included.
#pragma once

#include <functional>
#include <optional>

#include "data/loader.h"
#include "nn/model.h"

namespace convoy {

struct Score {
  double loss = 0;  // means over all samples
  double accuracy = 0;
  std::int64_t samples = 0;
  // Of the mean of the logits for each image and for its mirror image, where that was asked for.
  std::optional<double> flip_accuracy = std::nullopt;
  // Of the mean of that and of the same for the image shifted by a pixel, up-left and down-right.
  std::optional<double> shift_accuracy = std::nullopt;
};

struct EvaluateOptions {
  bool flip = false;   // also find flip_accuracy; takes twice the time
  bool shift = false;  // and shift_accuracy; takes six times the time
  // Stops early where it says so (the score is then of what was seen).
  std::function<bool()> stop = {};
};

// What a loader's samples showed. Sums: those of several workers add up.
struct Tally {
  double loss_sum = 0;
  std::int64_t correct = 0;
  std::int64_t flip_correct = 0;
  std::int64_t shift_correct = 0;
  std::int64_t samples = 0;
};
Tally tally(Model& model, Loader& loader, const EvaluateOptions& options = {});
Score score_of(const Tally& tally, const EvaluateOptions& options);
// Adds what one batch shows.
void tally_batch(Model& model, const Batch& batch, const EvaluateOptions& options, Tally& sums);

Score evaluate(Model& model, Loader& loader, const EvaluateOptions& options = {});

// Options of a loader that visits each test sample once, in order, unchanged.
LoaderOptions evaluation_loader(int batch, int threads);

}  // namespace convoy
