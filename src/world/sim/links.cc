#include "world/sim/links.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace convoy {

Links::Links(const Cluster& cluster)
    : host_of_(cluster.host_of),
      latency_ps_(cluster.network.latency_s * 1e12),
      local_latency_ps_(cluster.local.latency_s * 1e12) {
  if (host_of_.empty()) {
    host_of_.resize(cluster.ranks);
    std::iota(host_of_.begin(), host_of_.end(), 0);
  }
  CHECK(static_cast<int>(host_of_.size()) == cluster.ranks, "{} places for {} ranks",
        host_of_.size(), cluster.ranks);
  const int hosts = 1 + *std::max_element(host_of_.begin(), host_of_.end());
  out_.assign(hosts, {.ps_per_byte = 1e12 / cluster.network.bytes_per_s});
  for (const Cluster::Port& port : cluster.ports)
    out_.at(port.host).ps_per_byte = 1e12 / port.bytes_per_s;
  in_ = out_;
  local_out_.assign(cluster.ranks, {.ps_per_byte = 1e12 / cluster.local.bytes_per_s});
  local_in_ = local_out_;
  for (const auto& [host, peer, link] : cluster.wires)
    wires_.push_back({host, peer, link.latency_s * 1e12, 1e12 / link.bytes_per_s});
}

// Every message takes some time, so that no two leave or reach a port at once: then the order of
// messages between two ranks never hangs on how ties are decided.
SimTime Links::duration(std::size_t bytes, double ps_per_byte) {
  return std::max<SimTime>(1, static_cast<SimTime>(static_cast<double>(bytes) * ps_per_byte));
}

const Links::Wire* Links::wire(int host, int peer) const {
  for (const Wire& wire : wires_)
    if ((wire.host == host && wire.peer == peer) || (wire.host == peer && wire.peer == host))
      return &wire;
  return nullptr;
}

bool Links::Trouble::joins(int a, int b) const {
  if (a == b) return false;
  if (peer == kAnyRank) return a == rank || b == rank;
  return (a == rank && b == peer) || (a == peer && b == rank);
}

Links::Departure Links::depart(SimTime now, int from, int to, std::size_t bytes) {
  const int host = host_of_[from];
  const int peer = host_of_[to];
  Port& port = host == peer ? local_out_[from] : out_[host];
  double latency_ps = host == peer ? local_latency_ps_ : latency_ps_;
  double ps_per_byte = port.ps_per_byte;
  if (!wires_.empty() && host != peer)
    if (const Wire* special = wire(host, peer)) {
      latency_ps = special->latency_ps;
      ps_per_byte = std::max(ps_per_byte, special->ps_per_byte);
    }
  const SimTime start = std::max(now, port.free);
  for (const Trouble& trouble : troubles_)
    if (trouble.factor > 0 && trouble.joins(from, to) && start >= trouble.from &&
        start < trouble.until) {
      latency_ps *= trouble.factor;
      ps_per_byte *= trouble.factor;
    }
  port.free = start + duration(bytes, ps_per_byte);
  const auto latency = static_cast<SimTime>(latency_ps);
  Departure departure{port.free, start + latency, port.free + latency};
  if (!troubles_.empty()) [[unlikely]]
    delay(from, to, departure);
  return departure;
}

SimTime Links::arrive(SimTime now, int from, int to, std::size_t bytes, SimTime tail) {
  const bool near = host_of_[from] == host_of_[to];
  Port& port = near ? local_in_[to] : in_[host_of_[to]];
  port.free = std::max(std::max(now, port.free) + duration(bytes, port.ps_per_byte), tail);
  return port.free;
}

void Links::slow(int rank, int peer, double factor, SimTime from, SimTime until) {
  troubles_.push_back({rank, peer, factor, from, until});
}

void Links::cut(int rank, int peer, SimTime from, SimTime until) {
  troubles_.push_back({rank, peer, 0, from, until});
}

bool Links::holds_back(int rank, int peer, SimTime told, SimTime now) const {
  for (const Trouble& trouble : troubles_)
    if (trouble.factor == 0 && trouble.joins(rank, peer) && told >= trouble.from &&
        now < trouble.until)
      return true;
  return false;
}

// What cuts do to a message. A later message must not come before an earlier one because the link
// was slow or cut in between.
void Links::delay(int from, int to, Departure& departure) {
  const SimTime length = departure.tail - departure.head;
  for (const Trouble& trouble : troubles_)
    if (trouble.factor == 0 && trouble.joins(from, to) && departure.head >= trouble.from)
      departure.head = std::max(departure.head, trouble.until);
  if (departure.head == kNever) return;
  SimTime& last = last_head_[static_cast<std::uint64_t>(from) << 32 | static_cast<unsigned>(to)];
  departure.head = last = std::max(departure.head, last + 1);
  departure.tail = departure.head + length;
}

}  // namespace convoy
