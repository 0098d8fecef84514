// How fast a server moves weights, beside what the memory can do.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace convoy {

struct UpdateOptions {
  std::size_t bytes = 0;  // of the weights
  std::size_t slice_bytes = 0;
  int iterations = 0;
  std::string wire = "f32";
};

struct UpdateRow {
  int workers = 1;      // whose gradients are summed
  float momentum = 0;   // 0: plain SGD
  double seconds = 0;   // median
  double gb_per_s = 0;  // all that is loaded and stored: gradients, weights, momentum
};

struct UpdateRates {
  double triad_gb_per_s = 0;  // a = b + s * c; two loads, the load of the line of a, a store
  std::vector<UpdateRow> rows;
};

// In this process, on the threads that it has. Everything takes turns.
UpdateRates measure_updates(const UpdateOptions& options);

}  // namespace convoy
