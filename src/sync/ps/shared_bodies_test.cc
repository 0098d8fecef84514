#include "sync/ps/shared_bodies.h"

#include <gtest/gtest.h>

#include <vector>

#include "world/inproc/inproc.h"

namespace convoy {
namespace {

// Ranks 0 and 1 are on one host, rank 2 on another.
TEST(SharedBodies, AreFoundByRanksOfTheSameHostAlone) {
  run_inproc(3, {.host_of = {0, 0, 1}}, [](World world) {
    Transport& transport = world.transport;
    const SharedBodies shared(transport, 4096);
    const std::vector<std::byte> elsewhere(64);
    EXPECT_EQ(shared.own().size(), transport.rank() == 2 ? 0u : 4096u);
    EXPECT_EQ(shared.place_for(1, elsewhere), 0u);
    std::uint64_t place = 0;
    if (transport.rank() == 0) {
      const std::span<std::byte> body = shared.own().subspan(100, 50);
      body[49] = std::byte{7};
      EXPECT_EQ(shared.place_for(2, body), 0u);
      place = shared.place_for(1, body);
      EXPECT_NE(place, 0u);
      transport.wait(transport.send(1, 1, std::as_bytes(std::span(&place, 1))), 10);
    } else if (transport.rank() == 1) {
      transport.wait(transport.recv(0, 1, std::as_writable_bytes(std::span(&place, 1))), 10);
      const std::span<const std::byte> body = shared.body_of(0, place, 50);
      ASSERT_EQ(body.size(), 50u);
      EXPECT_EQ(body[49], std::byte{7});
      EXPECT_TRUE(shared.body_of(0, 0, 50).empty());
      EXPECT_TRUE(shared.body_of(0, 4097, 1).empty());
      EXPECT_TRUE(shared.body_of(0, 4000, 98).empty());
      EXPECT_TRUE(shared.body_of(0, ~std::uint64_t{0}, 50).empty());
      EXPECT_TRUE(shared.body_of(0, 1, ~std::uint64_t{0}).empty());
      EXPECT_TRUE(shared.body_of(2, place, 50).empty());
    }
    transport.close(10);
  });
}

}  // namespace
}  // namespace convoy
