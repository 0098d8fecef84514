#include "cli/bench_servers.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy {

ServerJob bench_job(const BenchJob& options) {
  const std::size_t count = options.bytes / sizeof(float);
  const std::size_t slice = std::max<std::size_t>(options.slice_bytes / sizeof(float), 1);
  ServerJob job;
  std::vector<Bucket> buckets;
  for (std::size_t begin = 0; begin < count; begin += slice) {
    Parameter parameter;
    parameter.spec.name = fmt::format("slice{}", buckets.size());
    parameter.begin = begin;
    parameter.end = std::min(begin + slice, count);
    buckets.push_back({int(buckets.size()), parameter.begin, parameter.end});
    job.parameters.push_back(std::move(parameter));
  }
  job.workers = options.workers;
  job.policy = options.policy;
  job.wire = options.wire;
  job.optimizer = {.kind = "sgd", .momentum = options.momentum};
  job.schedule = {.kind = "constant", .rate = 1};
  job.layout = make_layout(job.parameters, buckets,
                           {.servers = options.servers, .slice_bytes = options.slice_bytes});
  job.shared_bytes = options.wire == "f32" ? options.bytes / sizeof(float) * sizeof(float) : 0;
  job.course = {.samples = 1, .parts = options.workers};
  return job;
}

}  // namespace convoy
