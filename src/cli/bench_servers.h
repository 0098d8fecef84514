// A run of parameter servers without a network: slices of one size, plain SGD or momentum.
#pragma once

#include <cstddef>
#include <string>

#include "sync/ps/job.h"

namespace convoy {

struct BenchJob {
  std::size_t bytes = 0;
  std::size_t slice_bytes = 0;
  int workers = 1;
  int servers = 1;
  std::string policy = "sync";
  std::string wire = "f32";
  float momentum = 0;
};

// Every slice is a parameter of its own, moved at a rate of 1 without momentum.
ServerJob bench_job(const BenchJob& options);

}  // namespace convoy
