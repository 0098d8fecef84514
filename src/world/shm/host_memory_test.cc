#include "world/host_memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "world/shm/shm_test_support.h"

namespace convoy::shm {
namespace {

TEST(ShmHostMemoryTest, RegionsAreSharedAndBarriersSeparate) {
  for (const int ranks : {1, 2, 3, 5}) {
    run_processes(small_segment(ranks), [](World world) {
      HostMemory& memory = *world.transport.host_memory();
      const int own = memory.index(), count = static_cast<int>(memory.ranks().size());
      std::byte outside{};
      EXPECT_EQ(memory.in_region_of(0, &outside), nullptr);
      memory.allocate(13);
      const auto piece = memory.allocate(4096);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.data()) % 64, 0u);
      EXPECT_EQ(piece[4095], std::byte{0});
      for (int round = 0; round < 500; ++round) {
        for (int index = 0; index < count; ++index)
          memory.in_region_of(index, piece.data())[64 * own] = std::byte(round + own);
        memory.barrier(kLong_s);
        for (int index = 0; index < count; ++index)
          ASSERT_EQ(piece[64 * index], std::byte(round + index));
        memory.barrier(kLong_s);
      }
      EXPECT_THROW(memory.allocate(kTestRegionBytes), TransportError);
      world.transport.close(kLong_s);
    });
  }
}

TEST(ShmHostMemoryTest, MessagesGoOnInABarrier) {
  run_threads(small_segment(2), [](World world) {
    Transport& transport = world.transport;
    std::vector<std::byte> data(8 << 20);
    if (transport.rank() == 0) {
      const Ticket send = transport.send(1, 0, data);
      transport.host_memory()->barrier(kLong_s);
      transport.wait(send, kLong_s);
    } else {
      transport.wait(transport.recv(0, 0, data), kLong_s);
      transport.host_memory()->barrier(kLong_s);
    }
    transport.close(kLong_s);
  });
}

TEST(ShmHostMemoryTest, RankThatLeavesMakesABarrierFail) {
  Segment segment = Segment::create(small_segment(2));
  Processes ranks(segment, [](World world) {
    if (world.transport.rank() == 0) {
      EXPECT_THROW(world.transport.host_memory()->barrier(kLong_s), PeerLost);
    }
    world.transport.close(kLong_s);
  });
  EXPECT_TRUE(ranks.wait_all());
}

}  // namespace
}  // namespace convoy::shm
