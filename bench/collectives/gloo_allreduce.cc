// What Gloo's ring takes for an all-reduce of floats over TCP: gloo_allreduce RANK SIZE ADDRESS FOLDER BYTES ITERATIONS.
// The ranks meet through files in FOLDER. Rank 0 prints one JSON object.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: gloo_allreduce RANK SIZE ADDRESS FOLDER BYTES ITERATIONS\n");
    return 2;
  }
  const int rank = std::atoi(argv[1]), size = std::atoi(argv[2]), iterations = std::atoi(argv[6]);
  const std::size_t count = std::strtoull(argv[5], nullptr, 10) / sizeof(float);
  gloo::transport::tcp::attr attributes;
  attributes.hostname = argv[3];
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(argv[4]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);

  std::vector<float> values(count);
  std::vector<double> seconds;
  for (int round = 0; round <= iterations; ++round) {
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(rank + 1 + i % 5);
    gloo::BarrierOptions meet(context);
    gloo::barrier(meet);
    const auto begin = std::chrono::steady_clock::now();
    gloo::AllreduceOptions options(context);
    options.setOutput(values.data(), values.size());
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
    if (round > 0)
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    for (std::size_t i = 0; i < count; ++i)
      if (values[i] != static_cast<float>(size * (size + 1) / 2 + size * static_cast<int>(i % 5))) {
        std::fprintf(stderr, "rank %d: a wrong sum at %zu\n", rank, i);
        return 1;
      }
  }
  std::sort(seconds.begin(), seconds.end());
  if (rank == 0)
    std::printf("{\"seconds\":%.9f,\"best_s\":%.9f}\n", seconds[seconds.size() / 2], seconds[0]);
}
