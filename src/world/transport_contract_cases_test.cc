// The cases of the contract in which every rank stays to the end.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "world/contract_tools.h"

namespace convoy {
namespace {

void keeps_order_per_tag(World world, const Die&) {
  Transport& transport = world.transport;
  constexpr int kMessages = 300;
  constexpr Tag kTags = 3;
  if (transport.rank() == 0) {
    std::vector<std::vector<std::byte>> sent;
    std::vector<Ticket> tickets;
    for (int message = 0; message < kMessages; ++message)
      for (Tag tag = 0; tag < kTags; ++tag) {
        sent.push_back(pattern(1 + message * 37 % 5000, message * 10 + tag));
        tickets.push_back(transport.send(1, tag, sent.back()));
      }
    for (const Ticket ticket : tickets) transport.wait(ticket, kWait_s);
  } else if (transport.rank() == 1) {
    for (Tag tag = kTags; tag-- > 0;)  // all messages of the last tag first
      for (int message = 0; message < kMessages; ++message)
        receive(transport, 0, tag, 1 + message * 37 % 5000, message * 10 + tag);
  }
  end(world);
}

void receives_from_any_rank(World world, const Die&) {
  Transport& transport = world.transport;
  constexpr int kEach = 20;
  std::vector<std::vector<std::byte>> sent;
  std::vector<Ticket> tickets;
  for (int message = 0; message < kEach; ++message) {
    sent.push_back(pattern(8 + message, transport.rank() * 100 + message));
    tickets.push_back(transport.send(0, 5, sent.back()));
  }
  if (transport.rank() == 0) {
    std::vector<int> next(transport.size(), 0);
    std::vector<std::byte> buffer(1000);
    for (int message = 0; message < kEach * transport.size(); ++message) {
      const Completion done = transport.wait(transport.recv(kAnyRank, 5, buffer), kWait_s);
      const int number = next[done.rank]++;
      require(done.bytes == 8u + number, "rank {}: {} bytes in message {}", done.rank, done.bytes,
              number);
      require_pattern(transport, std::span(buffer).first(done.bytes), done.rank * 100 + number);
    }
  }
  for (const Ticket ticket : tickets) transport.wait(ticket, kWait_s);
  end(world);
}

void carries_nothing(World world, const Die&) {
  Transport& transport = world.transport;
  for (int message = 0; message < 3; ++message) {
    const Ticket recv = transport.recv((transport.rank() + 1) % transport.size(), 1, {});
    const int to = (transport.rank() + transport.size() - 1) % transport.size();
    const Ticket send = transport.send(to, 1, {});
    const Completion received = transport.wait(recv, kWait_s);
    const Completion sent = transport.wait(send, kWait_s);
    require(received.bytes == 0 && received.ticket == recv, "a message of {} bytes",
            received.bytes);
    require(sent.rank == to, "sent to {}", sent.rank);
  }
  end(world);
}

void sends_to_itself(World world, const Die&) {
  Transport& transport = world.transport;
  const auto big = pattern(3 << 20, 1);
  const auto small = pattern(10, 2);
  const Ticket first = transport.send(transport.rank(), 1, big);
  const Ticket second = transport.send(transport.rank(), 2, small);
  receive(transport, transport.rank(), 2, small.size(), 2);
  receive(transport, kAnyRank, 1, big.size(), 1);
  transport.wait(first, kWait_s);
  transport.wait(second, kWait_s);
  end(world);
}

void takes_messages_that_come_early(World world, const Die&) {
  Transport& transport = world.transport;
  const auto big = pattern(2 << 20, 1);
  const auto small = pattern(100, 2);
  if (transport.rank() == 0) {
    const Ticket one = transport.send(1, 1, big);
    const Ticket two = transport.send(1, 2, small);
    transport.wait(transport.send(1, 3, {}), kWait_s);
    transport.wait(one, kWait_s);
    transport.wait(two, kWait_s);
  } else if (transport.rank() == 1) {
    receive(transport, 0, 3, 0, 0);
    receive(transport, 0, 2, small.size(), 2);
    receive(transport, 0, 1, big.size(), 1);
  }
  end(world);
}

void tells_the_length_and_refuses_what_is_too_long(World world, const Die&) {
  Transport& transport = world.transport;
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{1} << 20}) {
    if (transport.rank() == 0) {
      const auto message = pattern(bytes, 4);
      std::vector<Ticket> tickets;
      for (int count = 0; count < 3; ++count) tickets.push_back(transport.send(1, 1, message));
      for (const Ticket ticket : tickets) transport.wait(ticket, kWait_s);
    } else if (transport.rank() == 1) {
      std::vector<std::byte> buffer(bytes + 5, std::byte{99});
      const Ticket too_short = transport.recv(0, 1, std::span(buffer).first(bytes - 1));
      for (int again = 0; again < 2; ++again) {
        const auto broken = failure<TransportError>([&] { transport.wait(too_short, kWait_s); });
        require(broken && !dynamic_cast<const PeerLost*>(&*broken), "a long message was taken");
      }
      transport.cancel(too_short);
      const Completion done = transport.wait(transport.recv(0, 1, buffer), kWait_s);
      require(done.bytes == bytes, "{} bytes", done.bytes);
      require_pattern(transport, std::span(buffer).first(bytes), 4);
      require(buffer[bytes] == std::byte{99}, "bytes behind the message were written");
      receive(transport, 0, 1, bytes, 4);
    }
  }
  end(world);
}

void gives_up_what_is_cancelled(World world, const Die&) {
  Transport& transport = world.transport;
  std::vector<std::byte> first(64), second(64);
  if (transport.rank() == 1) {
    const Ticket cancelled = transport.recv(0, 1, first);
    const Ticket any = transport.recv(kAnyRank, 1, first);
    const Ticket kept = transport.recv(0, 1, second);
    transport.cancel(cancelled);
    transport.cancel(any);
    transport.cancel(cancelled);  // does nothing
    transport.wait(transport.send(0, 2, {}), kWait_s);
    require(transport.wait(kept, kWait_s).bytes == 64, "length");
    require_pattern(transport, second, 3);
    require(std::all_of(first.begin(), first.end(), [](std::byte b) { return b == std::byte{}; }),
            "a cancelled buffer was written");
  } else if (transport.rank() == 0) {
    receive(transport, 1, 2, 0, 0);
    transport.wait(transport.send(1, 1, pattern(64, 3)), kWait_s);
  }
  end(world);
}

void ends_a_wait_at_its_deadline(World world, const Die&) {
  Transport& transport = world.transport;
  std::vector<std::byte> buffer(8);
  if (transport.rank() == 0) {
    const Ticket ticket = transport.recv(1, 1, buffer);
    require(failure<DeadlineExceeded>([&] { transport.wait(ticket, 0.01); }).has_value(), "no end");
    require(!transport.wait_any({&ticket, 1}, 0.01), "done too soon");
    require(!transport.wait_any({&ticket, 1}, 0), "done too soon");
    const double before_s = world.runtime.now_s();
    require(!transport.wait_any({}, 0.02), "done without a ticket");
    require(world.runtime.now_s() >= before_s + 0.0199, "back before the deadline");
    transport.wait(transport.send(1, 2, {}), kWait_s);
    require(transport.wait(ticket, kWait_s).bytes == 8, "the ticket did not stay open");
  } else if (transport.rank() == 1) {
    receive(transport, 0, 2, 0, 0);
    transport.wait(transport.send(0, 1, buffer), kWait_s);
  }
  end(world);
}

void wakes(World world, const Die&) {
  Transport& transport = world.transport;
  transport.wake();
  transport.wake();
  require(!transport.wait_any({}, kForever), "woken by what?");
  require(!transport.wait_any({}, 0.005), "two wakes before a wait are one");
  transport.wake();
  const Ticket self = transport.recv(transport.rank(), 1, {});
  transport.wait(transport.send(transport.rank(), 1, {}), kWait_s);
  transport.wait(self, kWait_s);  // does not heed it
  require(!transport.wait_any({}, kForever), "woken by what?");
  const auto task = world.runtime.spawn("waker", [&] {
    world.runtime.sleep_s(0.005);
    transport.wake();
  });
  std::vector<std::byte> buffer(1);
  const Ticket never = transport.recv(transport.rank(), 9, buffer);
  require(!transport.wait_any({&never, 1}, kForever), "a message from nowhere");
  task->join();
  transport.cancel(never);
  end(world);
}

void waits_for_any_of_several(World world, const Die&) {
  Transport& transport = world.transport;
  constexpr int kTickets = 12;
  if (transport.rank() == 0) {
    std::vector<std::vector<std::byte>> buffers(kTickets, std::vector<std::byte>(100));
    std::vector<Ticket> open;
    for (int peer = 0; peer < kTickets; ++peer)
      open.push_back(transport.recv(1 + peer % (transport.size() - 1), peer, buffers[peer]));
    while (!open.empty()) {
      const auto done = transport.wait_any(open, kWait_s);
      require(done.has_value(), "no message");
      require(std::erase(open, done->ticket) == 1, "a foreign ticket");
    }
    for (int peer = 0; peer < kTickets; ++peer) require_pattern(transport, buffers[peer], peer);
  } else {
    for (int peer = kTickets; peer-- > 0;)
      if (1 + peer % (transport.size() - 1) == transport.rank())
        transport.wait(transport.send(0, peer, pattern(100, peer)), kWait_s);
  }
  end(world);
}

void separates_many_tags(World world, const Die&) {
  Transport& transport = world.transport;
  constexpr Tag kTags = 1500;
  const auto tag_of = [](Tag number) { return kLargestTag - number * 4099; };
  if (transport.rank() == 0) {
    std::vector<std::uint32_t> values(kTags);
    std::iota(values.begin(), values.end(), 0);
    std::vector<Ticket> tickets;
    for (Tag number = 0; number < kTags; ++number)
      tickets.push_back(
          transport.send(1, tag_of(number), std::as_bytes(std::span(values).subspan(number, 1))));
    for (const Ticket ticket : tickets) transport.wait(ticket, kWait_s);
  } else if (transport.rank() == 1) {
    std::vector<std::uint32_t> values(kTags);
    std::vector<Ticket> tickets(kTags);
    for (Tag number = kTags; number-- > 0;)
      tickets[number] = transport.recv(
          0, tag_of(number), std::as_writable_bytes(std::span(values).subspan(number, 1)));
    for (Tag number = 0; number < kTags; ++number) {
      transport.wait(tickets[number], kWait_s);
      require(!transport.carries_bytes() || values[number] == number, "tag {}", number);
    }
  }
  end(world);
}

void exchange(Transport& transport, std::size_t bytes) {
  std::vector<std::vector<std::byte>> out, in(transport.size(), std::vector<std::byte>(bytes));
  std::vector<Ticket> sends, recvs;
  for (int peer = 0; peer < transport.size(); ++peer) {
    out.push_back(pattern(bytes, transport.rank() * 50 + peer));
    sends.push_back(transport.send(peer, 4, out.back()));
  }
  for (int peer = 0; peer < transport.size(); ++peer)
    recvs.push_back(transport.recv(peer, 4, in[peer]));
  for (int peer = 0; peer < transport.size(); ++peer) {
    transport.wait(sends[peer], kWait_s);
    require(transport.wait(recvs[peer], kWait_s).bytes == bytes, "length");
    require_pattern(transport, in[peer], peer * 50 + transport.rank());
  }
}

void joins_all_pairs(World world, const Die&) {
  for (const std::size_t bytes : {1, 63, 64, 65, 4095, 65536, 65537, 300'001})
    exchange(world.transport, bytes);
  end(world);
}

void crosses_large_sends(World world, const Die&) {
  exchange(world.transport, (8 << 20) + 3);
  end(world);
}

void carries_256_mib(World world, const Die&) {
  Transport& transport = world.transport;
  constexpr std::size_t kBytes = 256 << 20;
  if (transport.rank() == 0)
    transport.wait(transport.send(1, 1, pattern(kBytes, 8)), kWait_s);
  else if (transport.rank() == 1)
    receive(transport, 0, 1, kBytes, 8);
  end(world);
}

void tells_where_ranks_are(World world, const Die&) {
  Transport& transport = world.transport;
  const int next = (transport.rank() + 1) % transport.size();
  Position position{.sequence = 812u + transport.rank(), .bytes = 4096};
  position.set_place("all_reduce");
  transport.publish(position);
  meet(transport, 30);
  // News of a rank travel with its next sign of life: heartbeats carry them where messages do not.
  std::optional<Sighting> sighting;
  const double begin_s = world.runtime.now_s();
  while (!(sighting = transport.last_seen(next)) && world.runtime.now_s() < begin_s + kWait_s)
    transport.wait_any({}, 0.01);
  require(sighting.has_value(), "rank {} was never seen", next);
  require(sighting->position.text() == fmt::format("all_reduce #{}, 4096 bytes", 812 + next),
          "seen: {}", sighting->position.text());
  require(sighting->age_s >= 0 && sighting->age_s < kWait_s, "age {}", sighting->age_s);
  end(world);
}

void leaves_properly(World world, const Die&) {
  Transport& transport = world.transport;
  const int last = transport.size() - 1;
  if (transport.rank() == last) {
    const auto message = pattern(200'000, 6);
    const Ticket first = transport.send(0, 1, message);
    const Ticket second = transport.send(0, 1, message);
    transport.close(kWait_s);  // flushes
    static_cast<void>(first);
    static_cast<void>(second);
    return;
  }
  if (transport.rank() == 0) {
    receive(transport, last, 1, 200'000, 6);
    receive(transport, last, 1, 200'000, 6);
    const Ticket never = transport.recv(last, 1, {});
    const auto lost = failure<PeerLost>([&] { transport.wait(never, kWait_s); });
    require(lost && lost->rank() == last, "a receive from a rank that has left goes on");
    const Ticket any = transport.recv(kAnyRank, 2, {});
    require(!transport.wait_any({&any, 1}, 0.05), "a message from nowhere");
    for (int peer = 1; peer < last; ++peer) transport.wait(transport.send(peer, 3, {}), kWait_s);
  } else {
    receive(transport, 0, 3, 0, 0);
  }
  transport.close(kWait_s);
}

// The receiver takes what was sent and leaves before the sender looks again.
void ends_sends_to_one_who_leaves(World world, const Die&) {
  if (world.transport.rank() == 0) {
    const auto message = pattern(500'000, 5);
    const Ticket sent = world.transport.send(1, 1, message);
    world.runtime.sleep_s(0.05);
    world.transport.wait(sent, kWait_s);
  } else {
    receive(world.transport, 0, 1, 500'000, 5);
  }
  world.transport.close(kWait_s);
}

void shares_the_memory_of_a_host(World world, const Die&) {
  Transport& transport = world.transport;
  HostMemory* const memory = transport.host_memory();
  if (memory != nullptr) {
    const auto ranks = memory->ranks();
    require(std::is_sorted(ranks.begin(), ranks.end()), "ranks in disorder");
    require(ranks[memory->index()] == transport.rank(), "index {}", memory->index());
    const int count = static_cast<int>(ranks.size());
    const auto head = memory->allocate(100);
    const auto body = memory->allocate(sizeof(int) * 1000 * count);
    require(head.size() == 100 && reinterpret_cast<std::uintptr_t>(body.data()) % 64 == 0, "place");
    require(std::all_of(body.begin(), body.end(), [](std::byte b) { return b == std::byte{}; }),
            "not zero");
    require(memory->in_region_of(memory->index(), body.data() + 5) == body.data() + 5,
            "own region");
    std::vector<std::byte> elsewhere(10);
    require(memory->in_region_of(0, elsewhere.data()) == nullptr,
            "foreign memory taken for shared");
    memory->barrier(kWait_s);
    for (int round = 1; round <= 20; ++round) {  // everybody writes a part of everybody's region
      for (int peer = 0; peer < count; ++peer) {
        auto* const theirs = reinterpret_cast<int*>(memory->in_region_of(peer, body.data()));
        std::fill_n(theirs + 1000 * memory->index(), 1000, round * 100 + memory->index());
      }
      memory->barrier(kWait_s);
      const auto* const mine = reinterpret_cast<const int*>(body.data());
      for (int peer = 0; peer < count; ++peer)
        require(mine[1000 * peer + 999] == round * 100 + peer, "round {}, from {}", round, peer);
      memory->barrier(kWait_s);
    }
  }
  end(world);
}

}  // namespace

std::vector<ContractCase> contract_cases() {
  const std::vector<int> all{1, 2, 3, 4, 5, 6, 7, 8};
  return {
      {"KeepsOrderPerTag", {2, 3}, keeps_order_per_tag},
      {"ReceivesFromAnyRank", all, receives_from_any_rank},
      {"CarriesNothing", {1, 2, 3}, carries_nothing},
      {"SendsToItself", {1, 2}, sends_to_itself},
      {"TakesMessagesThatComeEarly", {2, 3}, takes_messages_that_come_early},
      {"RefusesWhatIsTooLong", {2}, tells_the_length_and_refuses_what_is_too_long},
      {"GivesUpWhatIsCancelled", {2}, gives_up_what_is_cancelled},
      {"EndsAWaitAtItsDeadline", {2}, ends_a_wait_at_its_deadline},
      {"Wakes", {1, 2}, wakes},
      {"WaitsForAnyOfSeveral", {2, 4}, waits_for_any_of_several},
      {"SeparatesManyTags", {2}, separates_many_tags},
      {"JoinsAllPairs", all, joins_all_pairs},
      {"CrossesLargeSends", {2, 3}, crosses_large_sends},
      {"Carries256MiBSlow", {2}, carries_256_mib},
      {"TellsWhereRanksAre", {2, 4}, tells_where_ranks_are},
      {"LeavesProperly", {2, 4}, leaves_properly},
      {"EndsSendsToOneWhoLeaves", {2}, ends_sends_to_one_who_leaves},
      {"SharesTheMemoryOfAHost", all, shares_the_memory_of_a_host},
  };
}

}  // namespace convoy
