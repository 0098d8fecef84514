// What a server is told when it starts. Worker 0 knows the network and the data; a server needs
// neither, only the numbers that it keeps, how they are moved, and by which policy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "sync/ps/layout.h"

namespace convoy {

// What the coordinator hands out: parts of batches, then test batches, epoch by epoch.
struct CourseOptions {
  int epochs = 1;
  int first_epoch = 0, first_step = 0;  // where it begins
  std::int64_t samples = 0;
  std::int64_t batch = 1;
  int parts = 1;                // of a batch
  int test_steps = 0;           // test batches
  std::int64_t eval_every = 1;  // epochs
  bool guard = false;           // goes back and moves to a stricter policy when the loss diverges

  int steps() const { return int((samples + batch - 1) / batch); }
  // Samples of a part of a step's batch.
  std::int64_t part_samples(int step, int part) const;
  std::int64_t batch_samples(int step) const;
  int parts_of_epoch() const;  // that are not empty
};

struct ServerJob {
  int workers = 1;
  std::string policy = "sync";
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  std::int64_t updates_per_epoch = 1;
  int epochs = 1;
  std::int64_t updates = 0;  // made before
  ServerLayout layout;
  std::vector<Parameter> parameters;  // of the arena; shapes are left out
  int virtual_shards = 0;             // that gradients come in, to be summed exactly; 0: one sum
  std::string wire = "f32";           // of gradients, see WireCode; bf16: also of their answers
  std::size_t buffers = 0;  // floats of running statistics, averaged at the end of an epoch
  CourseOptions course;
  int replicas = 0;                 // copies of a slice that an answer waits for
  std::int64_t snapshot_every = 0;  // updates of a slice after which it is copied anyway; 0: never
  std::size_t shared_bytes = 0;     // of a rank, for gradients that are read where they lie
  double update_s_per_byte = 0;     // of a simulated server, by bytes of gradient

  // Whether each server's slices are copied to the next, which takes over if it is lost.
  bool mirrors() const;

  // Bytes of the largest push, or of the largest slice, where that is more.
  std::size_t largest_push() const;

  std::string to_text() const;
  static ServerJob from_text(const std::string& text);
};

}  // namespace convoy
