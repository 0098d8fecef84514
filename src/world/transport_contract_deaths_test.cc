// The cases of the contract in which ranks are lost.
#include "world/contract_tools.h"

namespace convoy {
namespace {

// The last rank sends two messages under one tag to rank 0 and dies when the second was received,
// so that the first has surely arrived.
void finds_a_dead_peer(World world, const Die& die) {
  Transport& transport = world.transport;
  const int last = transport.size() - 1;
  std::vector<std::byte> buffer(2000), first(1000), second(1000);
  Ticket arrived = 0;
  if (transport.rank() == last) {
    transport.wait(transport.send(0, 1, pattern(1000, 1)), kWait_s);
    transport.wait(transport.send(0, 1, pattern(1000, 2)), kWait_s);
    receive(transport, 0, 2, 0, 0);
    die();
  } else if (transport.rank() == 0) {
    arrived = transport.recv(last, 1, first);
    transport.wait(transport.recv(last, 1, second), kWait_s);
    require_pattern(transport, second, 2);
    transport.wait(transport.send(last, 2, {}), kWait_s);
  }
  const Ticket blocked = transport.recv(last, 9, buffer);
  for (int again = 0; again < 2; ++again) {
    const auto lost = failure<PeerLost>([&] { transport.wait(blocked, kWait_s); });
    require(lost && lost->rank() == last, "rank {} was not found lost", last);
  }
  transport.cancel(blocked);
  const Ticket send = transport.send(last, 9, buffer);
  const auto lost = failure<PeerLost>([&] { transport.wait(send, kWait_s); });
  require(lost && lost->rank() == last, "a send to a dead rank was done");
  if (transport.rank() == 0) {
    require(transport.wait(arrived, kWait_s).bytes == 1000, "what had arrived is gone");
    require_pattern(transport, first, 1);
    for (int peer = 1; peer < last; ++peer)
      transport.wait(transport.send(peer, 3, buffer), kWait_s);
  } else {  // the others still talk
    require(transport.wait(transport.recv(0, 3, buffer), kWait_s).bytes == 2000, "length");
  }
  transport.close(kWait_s);
}

void tells_any_rank_receives_of_each_loss(World world, const Die& die) {
  Transport& transport = world.transport;
  if (transport.rank() >= 2) die();
  std::vector<std::byte> buffer(10);
  if (transport.rank() == 0) {
    const Ticket any = transport.recv(kAnyRank, 1, buffer);
    std::vector<bool> seen(transport.size(), false);
    for (int loss = 2; loss < transport.size(); ++loss) {
      const auto lost = failure<PeerLost>([&] { transport.wait(any, kWait_s); });
      require(lost && lost->rank() >= 2 && !seen[lost->rank()], "loss {} was not told once", loss);
      seen[lost->rank()] = true;
    }
    transport.wait(transport.send(1, 2, {}), kWait_s);
    require(transport.wait(any, kWait_s).rank == 1, "the receive did not stay open");
    transport.wait(transport.send(1, 2, {}), kWait_s);
  } else {
    receive(transport, 0, 2, 0, 0);
    transport.wait(transport.send(0, 1, buffer), kWait_s);
    receive(transport, 0, 2, 0, 0);
  }
  transport.close(kWait_s);
}

void finds_who_returned_without_close(World world, const Die&) {
  Transport& transport = world.transport;
  if (transport.rank() == 1) return;
  const Ticket any = transport.recv(kAnyRank, 1, {});
  const auto lost = failure<PeerLost>([&] { transport.wait(any, kWait_s); });
  require(lost && lost->rank() == 1, "rank 1 was not found lost");
  transport.close(kWait_s);
}

void ends_a_transfer_whose_peer_dies(World world, const Die& die) {
  Transport& transport = world.transport;
  std::vector<std::byte> buffer(64 << 20);
  if (transport.rank() == 1) {
    const Ticket send = transport.send(0, 1, buffer);
    transport.wait_any({&send, 1}, 0.001);
    die();
  }
  const Ticket recv = transport.recv(1, 1, buffer);
  const Ticket second = transport.recv(1, 1, buffer);
  const auto first = failure<PeerLost>([&] { transport.wait(recv, kWait_s); });
  require(!first || first->rank() == 1, "rank {} was taken for lost", first ? first->rank() : 1);
  const auto lost = failure<PeerLost>([&] { transport.wait(second, kWait_s); });
  require(lost && lost->rank() == 1, "rank 1 was not found lost");
  transport.close(kWait_s);
}

void finds_who_misses_at_the_barrier(World world, const Die& die) {
  Transport& transport = world.transport;
  HostMemory* const memory = transport.host_memory();
  if (memory != nullptr && memory->ranks().size() > 1) {
    if (transport.rank() == memory->ranks().front())
      require(failure<DeadlineExceeded>([&] { memory->barrier(0.01); }).has_value(), "no end");
  }
  meet(transport, 5);  // nobody else came to that barrier
  if (memory != nullptr && memory->ranks().size() > 1) {
    const int missing = memory->ranks().back();
    memory->barrier(kWait_s);
    if (transport.rank() == missing) die();
    const auto lost = failure<PeerLost>([&] { memory->barrier(kWait_s); });
    require(lost && lost->rank() == missing, "rank {} was not missed", missing);
    // Nobody leaves, and is missed too, before all have found the loss.
    const int front = memory->ranks().front();
    for (const int rank : memory->ranks()) {
      if (rank == front || rank == missing) continue;
      if (transport.rank() == front) receive(transport, rank, 6, 0, 0);
      if (transport.rank() == rank) transport.wait(transport.send(front, 6, {}), kWait_s);
    }
    for (const int rank : memory->ranks()) {
      if (rank == front || rank == missing) continue;
      if (transport.rank() == front) transport.wait(transport.send(rank, 7, {}), kWait_s);
      if (transport.rank() == rank) receive(transport, front, 7, 0, 0);
    }
  }
  transport.close(kWait_s);
}

}  // namespace

std::vector<ContractCase> death_contract_cases() {
  return {
      {"FindsADeadPeer", {2, 3, 5}, finds_a_dead_peer},
      {"TellsAnyRankReceivesOfEachLoss", {3, 4}, tells_any_rank_receives_of_each_loss},
      {"FindsWhoReturnedWithoutClose", {2}, finds_who_returned_without_close},
      {"EndsATransferWhosePeerDies", {2}, ends_a_transfer_whose_peer_dies},
      {"FindsWhoMissesAtTheBarrier", {2, 4}, finds_who_misses_at_the_barrier},
  };
}

}  // namespace convoy
