// A store with made-up runs, for tests.
#pragma once

#include <string>

#include "measure/store.h"

namespace convoy {

struct MadeUpRun {
  std::string name = "mnist_cnn-mnist-1";
  std::string state = "finished";
  int workers = 2;
  int steps = 100;  // of each worker
  int batch = 128;
  int seconds = 12;  // samples of resources
  int seed = 1;
  std::string sync = "allreduce";
  double images_per_s = 20000;
  int pid = 0;  // of this machine, where it is running
};

// Rows in every table. Loss of step s is 1 / s on worker 0 and 3 / s on the others; a step takes
// 10 ms on every worker, 2 ms of which worker 0 waits for worker 1.
std::int64_t add_run(Store& store, const MadeUpRun& run);

}  // namespace convoy
