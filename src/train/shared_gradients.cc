#include "train/shared_gradients.h"

#include "world/host_memory.h"

namespace convoy {

void share_gradients(Workers& workers, World world, Parameters& parameters) {
  HostMemory* const host = world.transport.host_memory();
  if (!host || host->ranks().size() < 2 || !world.transport.carries_bytes()) return;
  const std::size_t count = parameters.gradients().size();
  workers.comm().run([&](Communicator&) {
    const std::span<std::byte> memory = host->allocate(count * sizeof(float));
    parameters.place_gradients({reinterpret_cast<float*>(memory.data()), count});
  });
}

}  // namespace convoy
