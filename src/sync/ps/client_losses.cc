// How a worker takes losses.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/error.h"
#include "sync/ps/client.h"

namespace convoy {

void ServerClient::lose(int rank, const std::string& why) {
  if (rank >= workers_) return lose_server(rank - workers_, why);
  if (leader_)
    leader_->lose_worker(rank, why);
  else if (!leaving_)
    throw PeerLost(rank, fmt::format("it leads the run: {}", why));
}

// What was asked of the lost server, and not answered, is asked of the one that has its slices now.
void ServerClient::lose_server(int server, const std::string& why) {
  if (leaving_ || succession_.lost(server)) return;
  std::vector<std::uint32_t> moved;
  for (std::uint32_t i = 0; i < std::uint32_t(slices_.size()); ++i)
    if (holder_of(i) == rank_of(server)) moved.push_back(i);
  const int heir = succession_.heir(server);
  succession_.lose(server);
  if (!mirrors_ || heir < 0)
    throw TransportError(fmt::format(
        "server {} is lost ({}), and nobody has a copy of its parameters: go on from the last "
        "checkpoint with --resume",
        server, why));
  {
    const std::lock_guard lock(mutex_);
    for (const std::uint32_t slice : moved) claim(slice);
    ++statistics_.lost_servers;
    accounts_[std::size_t(server)] = 0;
  }
  if (leader_) {
    leader_->lose_server(server);
    std::set<int> owners;  // at first
    for (const std::uint32_t slice : moved) owners.insert(layout_.slices[slice].server);
    for (std::size_t i = 0; i < owners.size(); ++i) expect_account(heir);
  }
  if (const auto again = request_) again();
}

void ServerClient::claim(std::uint32_t slice) {
  SliceState& state = slices_[slice];
  tell(succession_.holder(layout_.slices[slice].server), {.kind = WorkerHead::claim,
                                                          .slice = slice,
                                                          .number = state.applied,
                                                          .clock = state.told,
                                                          .version = state.version});
  if (!state.sent) return;
  state.head = state.values = true;
  send(slice);
}

// Comes for each server whose slices another takes over.
void ServerClient::expect_account(int server) {
  {
    const std::lock_guard lock(mutex_);
    ++accounts_[std::size_t(server)];
  }
  const auto came = std::make_shared<Account>();
  courier_.recv(
      rank_of(server), tag_of(Stream::account), writable_bytes_of(*came),
      [this, server, came](const Completion&) {
        leader_->note(fmt::format(
            "server {} is lost; server {} goes on with its parameters{}: {} updates lost",
            came->server, server, came->alone ? ", without a copy of them" : "", came->updates));
        {
          const std::lock_guard lock(mutex_);
          statistics_.lost_updates += came->updates;
          statistics_.lost_gradients += came->gradients;
          --accounts_[std::size_t(server)];
        }
        changed_->set();
      });
}

void ServerClient::settle_accounts() {
  wait_until([&] {
    return std::all_of(accounts_.begin(), accounts_.end(), [](int open) { return open == 0; });
  });
}

}  // namespace convoy
