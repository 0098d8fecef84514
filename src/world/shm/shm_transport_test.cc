#include "world/shm/shm_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <map>
#include <random>
#include <vector>

#include "world/host_memory.h"
#include "world/shm/shm_test_support.h"

namespace convoy::shm {
namespace {

using testing::HasSubstr;

// All messages of a world, which every rank knows: the oracle.
struct Message {
  int from, to;
  Tag tag;
  std::uint32_t seed;
  std::size_t bytes;
};
constexpr Tag kTags = 4;
constexpr Tag kAnyTag = kTags;  // received from any rank

std::vector<Message> random_messages(int ranks, int count, std::size_t most_bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Message> messages;
  for (int i = 0; i < count; ++i) {
    const std::size_t limit =
        random() % 8 == 0 ? most_bytes : std::min<std::size_t>(most_bytes, 300);
    messages.push_back({static_cast<int>(random() % ranks), static_cast<int>(random() % ranks),
                        static_cast<Tag>(random() % (kTags + 1)),
                        static_cast<std::uint32_t>(random()), random() % (limit + 1)});
  }
  return messages;
}

void expect_content(std::span<const std::byte> data, std::size_t bytes, const Message& message) {
  ASSERT_EQ(bytes, message.bytes);
  for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(data[i], pattern(message.seed, i)) << i;
}

// Sends and receives the own rank's part in an order of its own, many operations open at a time.
void exchange(Transport& transport, const std::vector<Message>& messages, unsigned seed) {
  std::mt19937 random(seed * 100 + transport.rank());
  struct Open {
    std::vector<std::byte> data;
    const Message* expected;  // null: a send
    std::size_t posted;       // its place among the receives
  };
  struct Arrived {
    std::vector<std::byte> data;
    std::size_t bytes;
  };
  std::map<int, std::map<std::size_t, Arrived>> any_arrived;  // by sender and place
  std::map<int, std::vector<const Message*>> any;             // by sender, in order
  std::vector<const Message*> sends, receives;
  std::size_t longest = 0;
  for (const Message& message : messages) {
    longest = std::max(longest, message.bytes);
    if (message.from == transport.rank()) sends.push_back(&message);
    if (message.to != transport.rank()) continue;
    receives.push_back(&message);
    if (message.tag == kAnyTag) any[message.from].push_back(&message);
  }
  std::map<Ticket, Open> open;
  std::size_t sent = 0, posted = 0;
  while (sent < sends.size() || posted < receives.size() || !open.empty()) {
    const unsigned choice = random() % 4;
    if (choice == 0 && sent < sends.size()) {
      const Message& message = *sends[sent++];
      Open operation{patterned(message.seed, message.bytes), nullptr, 0};
      const Ticket ticket = transport.send(message.to, message.tag, operation.data);
      open.emplace(ticket, std::move(operation));
    } else if (choice == 1 && posted < receives.size()) {
      const Message& message = *receives[posted++];
      const bool is_any = message.tag == kAnyTag;
      Open operation{std::vector<std::byte>(is_any ? longest : message.bytes + random() % 20),
                     &message, posted};
      const Ticket ticket =
          transport.recv(is_any ? kAnyRank : message.from, message.tag, operation.data);
      open.emplace(ticket, std::move(operation));
    } else if (!open.empty()) {
      std::vector<Ticket> tickets;
      for (const auto& [ticket, operation] : open) tickets.push_back(ticket);
      const bool all_started = sent == sends.size() && posted == receives.size();
      const auto done = transport.wait_any(tickets, all_started ? kLong_s : 0);
      ASSERT_TRUE(done || !all_started);
      if (!done) continue;
      Open operation = std::move(open.extract(done->ticket).mapped());
      if (!operation.expected) continue;
      if (operation.expected->tag == kAnyTag) {
        any_arrived[done->rank][operation.posted] = {std::move(operation.data), done->bytes};
      } else {
        EXPECT_EQ(done->rank, operation.expected->from);
        expect_content(operation.data, done->bytes, *operation.expected);
      }
    }
  }
  for (const auto& [from, expected] : any) {
    ASSERT_EQ(any_arrived[from].size(), expected.size());
    auto next = expected.begin();
    for (const auto& [place, arrived] : any_arrived[from])
      expect_content(arrived.data, arrived.bytes, **next++);
  }
}

void random_exchange(int ranks, int count, std::size_t most_bytes, std::size_t ring_bytes,
                     unsigned seed, void (*run)(const SegmentOptions&, const RankBody&)) {
  const std::vector<Message> messages = random_messages(ranks, count, most_bytes, seed);
  run({.ranks = ranks, .ring_bytes = ring_bytes, .region_bytes = kTestRegionBytes},
      [&](World world) {
        exchange(world.transport, messages, seed);
        world.transport.close(kLong_s);
      });
}

TEST(ShmTransportTest, RandomMessagesBetweenThreads) {
  random_exchange(3, 2000, 5000, 4096, 1, run_threads);
  random_exchange(4, 400, 1 << 20, 1 << 16, 2, run_threads);
}

TEST(ShmTransportTest, RandomMessagesBetweenProcesses) {
  random_exchange(3, 3000, 5000, 4096, 3, run_processes);
  random_exchange(2, 1000, 1 << 20, 1 << 20, 4, run_processes);
}

TEST(ShmTransportTest, SlowManyRandomMessages) {
  for (unsigned seed = 10; seed < 20; ++seed)
    random_exchange(1 + seed % 8, 6000, 1 << 20, std::size_t{4096} << seed % 9, seed,
                    run_processes);
}

TEST(ShmTransportTest, LargeMessagesPassEachOther) {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  run_processes(small_segment(2), [](World world) {
    Transport& transport = world.transport;
    const int peer = 1 - transport.rank();
    const auto out = patterned(transport.rank(), kBytes);
    std::vector<std::byte> in(kBytes);
    const Ticket send = transport.send(peer, 1, out);
    const Ticket receive = transport.recv(peer, 1, in);
    transport.wait(send, kLong_s);  // alone it could not end
    transport.wait(receive, kLong_s);
    EXPECT_TRUE(in == patterned(peer, kBytes));
    transport.close(kLong_s);
  });
}

// The receiver takes nothing before both are cancelled: then the first has begun and the second has
// not.
TEST(ShmTransportTest, CancelledSendArrivesWholeOrNotAtAll) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  std::latch cancelled(1);
  run_threads(small_segment(2), [&](World world) {
    Transport& transport = world.transport;
    if (transport.rank() == 0) {
      auto first = patterned(1, kBytes), second = patterned(2, kBytes);
      const Ticket begun = transport.send(1, 5, first);
      const Ticket waiting = transport.send(1, 5, second);
      transport.cancel(begun);
      transport.cancel(waiting);
      std::fill(first.begin(), first.end(), std::byte{0});  // the caller's again
      std::fill(second.begin(), second.end(), std::byte{0});
      cancelled.count_down();
      transport.wait(transport.send(1, 6, {}), kLong_s);
      transport.wait(transport.recv(1, 7, {}), kLong_s);
    } else {
      std::vector<std::byte> in(kBytes);
      cancelled.wait();
      transport.wait(transport.recv(0, 6, {}), kLong_s);
      transport.wait(transport.recv(0, 5, in), kLong_s);
      EXPECT_TRUE(in == patterned(1, kBytes));
      const Ticket never = transport.recv(0, 5, in);
      EXPECT_FALSE(transport.wait_any({&never, 1}, 0));
      transport.cancel(never);
      transport.wait(transport.send(0, 7, {}), kLong_s);
    }
    transport.close(kLong_s);
  });
}

TEST(ShmTransportTest, TakenRankIsRefused) {
  Segment segment = Segment::create(small_segment(1));
  const auto first = make_shm_transport(segment, {.rank = 0, .size = 1});
  EXPECT_THROW(make_shm_transport(segment, {.rank = 0, .size = 1}), TransportError);
}

TEST(ShmTransportTest, RanksThatDoNotComeAreNamed) {
  Segment segment = Segment::create(small_segment(3));
  try {
    make_shm_transport(segment, {.rank = 1, .size = 3, .ranks = {}, .timeout_s = 0.05});
    FAIL();
  } catch (const TransportError& error) {
    EXPECT_THAT(error.what(), HasSubstr("have not come: 0, 2"));
  }
}

// Ranks 4 and 6 of a larger job share a host.
TEST(ShmTransportTest, RanksOfAHostKeepTheirNumbers) {
  Segment segment = Segment::create(small_segment(2));
  const auto run = [&](int rank) {
    const auto transport = make_shm_transport(segment, {.rank = rank, .size = 8, .ranks = {4, 6}});
    EXPECT_EQ(transport->rank(), rank);
    EXPECT_EQ(transport->size(), 8);
    EXPECT_THAT(transport->host_memory()->ranks(), testing::ElementsAre(4, 6));
    std::vector<std::byte> out(1, std::byte(rank)), in(1);
    const Ticket receive = transport->recv(kAnyRank, 0, in);
    transport->wait(transport->send(10 - rank, 0, out), kLong_s);
    EXPECT_EQ(transport->wait(receive, kLong_s).rank, 10 - rank);
    EXPECT_EQ(in[0], std::byte(10 - rank));
    transport->close(kLong_s);
  };
  std::thread other([&] { run(6); });
  run(4);
  other.join();
}

}  // namespace
}  // namespace convoy::shm
