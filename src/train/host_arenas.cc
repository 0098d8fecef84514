#include "train/host_arenas.h"

#include <algorithm>
#include <vector>

#include "world/host_memory.h"

namespace convoy {
namespace {

std::span<float> floats(std::byte* memory, std::size_t count) {
  return {reinterpret_cast<float*>(memory), count};
}

// The same memory for all: a piece of the first worker's.
std::span<float> common_floats(HostMemory& host, std::size_t count) {
  return floats(host.in_region_of(0, host.allocate(count * sizeof(float)).data()), count);
}

}  // namespace

void share_gradients(Workers& workers, World world, Parameters& parameters) {
  HostMemory* const host = world.transport.host_memory();
  if (!host || host->ranks().size() < 2 || !world.transport.carries_bytes()) return;
  const std::size_t count = parameters.gradients().size();
  workers.comm().run([&](Communicator&) {
    parameters.place_gradients(floats(host->allocate(count * sizeof(float)).data(), count));
  });
}

bool shares_everything(World world) {
  HostMemory* const host = world.transport.host_memory();
  return host && world.transport.carries_bytes() && world.transport.size() > 1 &&
         int(host->ranks().size()) == world.transport.size();
}

void share_values(Workers& workers, World world, Parameters& parameters) {
  HostMemory& host = *world.transport.host_memory();
  const std::vector<float> start(parameters.values().begin(), parameters.values().end());
  workers.comm().run([&](Communicator& communicator) {
    parameters.place_values(common_floats(host, start.size()));
    if (workers.leads()) std::copy(start.begin(), start.end(), parameters.values().begin());
    communicator.barrier();
  });
}

void share_state(Workers& workers, World world, Optimizer& optimizer) {
  HostMemory& host = *world.transport.host_memory();
  workers.comm().run([&](Communicator&) {
    optimizer.place_state([&](std::size_t count) { return common_floats(host, count); });
  });
}

}  // namespace convoy
