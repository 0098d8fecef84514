#include "world/sim/sim.h"

#include <memory>

#include "base/check.h"
#include "world/rank_killed.h"
#include "world/sim/network.h"
#include "world/sim/sim_host_memory.h"
#include "world/sim/sim_runtime.h"

namespace convoy {
namespace {

class SimTransport final : public Transport {
 public:
  SimTransport(SimNetwork& network, SimHost& host, int rank)
      : network_(network), rank_(rank), memory_(host, rank) {}

  int rank() const override { return rank_; }
  int size() const override { return network_.size(); }
  Ticket send(int to, Tag tag, std::span<const std::byte> bytes) override {
    return network_.send(rank_, to, tag, bytes);
  }
  Ticket recv(int from, Tag tag, std::span<std::byte> buffer) override {
    return network_.recv(rank_, from, tag, buffer);
  }
  void cancel(Ticket ticket) override { network_.cancel(rank_, ticket); }
  void wake() override { network_.wake(rank_); }
  void publish(const Position& position) override { network_.publish(rank_, position); }
  std::optional<Sighting> last_seen(int rank) override { return network_.last_seen(rank_, rank); }
  void close(double timeout_s) override { network_.close(rank_, timeout_s); }
  HostMemory* host_memory() override { return &memory_; }
  bool carries_bytes() const override { return network_.carries_bytes(); }

 protected:
  std::optional<Completion> await(std::span<const Ticket> tickets, double timeout_s,
                                  Heed heed) override {
    return network_.await(rank_, tickets, timeout_s, heed == Heed::wake);
  }

 private:
  SimNetwork& network_;
  int rank_;
  SimHostMemory memory_;
};

std::vector<std::unique_ptr<SimHost>> make_hosts(SimNetwork& network, const Cluster& cluster,
                                                 std::size_t region_bytes) {
  std::vector<std::vector<int>> ranks;
  for (int rank = 0; rank < cluster.ranks; ++rank) {
    const std::size_t host = network.links().host_of(rank);
    if (host >= ranks.size()) ranks.resize(host + 1);
    ranks[host].push_back(rank);
  }
  std::vector<std::unique_ptr<SimHost>> hosts;
  for (std::vector<int>& of_host : ranks)
    hosts.push_back(std::make_unique<SimHost>(network, std::move(of_host), region_bytes,
                                              cluster.memory_bytes_per_s, cluster.barrier_s));
  return hosts;
}

// Runs one rank's body and notes how it ended.
class Role {
 public:
  Role(SimNetwork& network, SimHost& host, const Cluster& cluster, int rank)
      : network_(network),
        rank_(rank),
        runtime_(network.scheduler(), rank, cluster.speed.empty() ? 1 : cluster.speed.at(rank)),
        transport_(network, host, rank) {}

  void run(const RankBody& body, SimResult::Rank& result, std::exception_ptr& first) {
    std::string why = "it ended without closing its transport";
    result.end = SimResult::Rank::End::killed;
    try {
      body(World{runtime_, transport_});
      result.end =
          network_.closed(rank_) ? SimResult::Rank::End::closed : SimResult::Rank::End::returned;
    } catch (const RankKilled&) {
      why = "it was killed";
    } catch (const std::exception& error) {
      result.failure = std::current_exception();
      why = error.what();
    } catch (...) {
      result.failure = std::current_exception();
      why = "it failed";
    }
    if (result.failure) result.end = SimResult::Rank::End::failed;
    if (result.failure && !first) first = result.failure;
    result.at_s = runtime_.now_s();
    network_.lose(rank_, why);
  }

 private:
  SimNetwork& network_;
  int rank_;
  SimRuntime runtime_;
  SimTransport transport_;
};

}  // namespace

SimResult run_sim(const Cluster& cluster, const SimOptions& options, const RankBody& body) {
  CHECK(cluster.ranks >= 1, "{} ranks", cluster.ranks);
  SimResult result;
  result.ranks.resize(cluster.ranks);
  std::function<void(SimTime, int, std::uint32_t)> trace;
  if (options.keep_trace)
    trace = [&](SimTime time, int kind, std::uint32_t index) {
      result.trace.push_back({time, kind, index});
    };
  SimNetwork network(cluster, options, std::move(trace));
  const auto hosts = make_hosts(network, cluster, options.region_bytes);
  std::vector<std::unique_ptr<Role>> roles;
  std::exception_ptr first;
  for (int rank = 0; rank < cluster.ranks; ++rank) {
    roles.push_back(
        std::make_unique<Role>(network, *hosts[network.links().host_of(rank)], cluster, rank));
    network.scheduler().start(rank, "main",
                              [&, rank] { roles[rank]->run(body, result.ranks[rank], first); });
  }
  network.scheduler().run();
  result.seconds = to_seconds(network.scheduler().now());
  result.messages = network.messages();
  result.events = network.scheduler().events();
  result.trace_hash = network.scheduler().hash();
  if (first && options.rethrow) std::rethrow_exception(first);
  return result;
}

}  // namespace convoy
