// The accuracy of a model on a data set: every sample once, the last, smaller batch included.
#pragma once

#include <functional>

#include "data/loader.h"
#include "nn/model.h"

namespace convoy {

struct Score {
  double loss = 0;  // means over all samples
  double accuracy = 0;
  std::int64_t samples = 0;
};

// Stops early where `stop` says so (the score is then of what was seen).
Score evaluate(Model& model, Loader& loader, const std::function<bool()>& stop = {});

// Options of a loader that visits each test sample once, in order, unchanged.
LoaderOptions evaluation_loader(int batch, int threads);

}  // namespace convoy
