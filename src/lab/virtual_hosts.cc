#include "lab/virtual_hosts.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "data/child.h"

namespace convoy {
namespace {

using Words = std::vector<std::string>;

constexpr double kDeadline_s = 30;
constexpr int kMostHosts = 250;
// A smaller bucket cuts up the large packets that the kernel hands over, and halves the rate.
constexpr double kLeastBurstBytes = 128 << 10;
constexpr double kTicksPerSecond = 250;

// `tc` words that hold a device to a rate.
Words shaped(const std::string& device, double gbit_per_s) {
  const double burst = std::max(kLeastBurstBytes, gbit_per_s * 1e9 / 8 / kTicksPerSecond);
  return {"tc",
          "qdisc",
          "add",
          "dev",
          device,
          "root",
          "tbf",
          "rate",
          fmt::format("{:.0f}kbit", gbit_per_s * 1e6),
          "burst",
          fmt::format("{:.0f}", burst),
          "latency",
          "50ms"};
}

bool there_is(const char* program) { return run_child({program, "-V"}, ".", kDeadline_s).found; }

}  // namespace

std::string virtual_hosts_refused() {
  if (::geteuid() != 0) return "only root can make network namespaces";
  for (const char* program : {"ip", "tc"})
    if (!there_is(program))
      return fmt::format("there is no program `{}` (Debian: iproute2)", program);
  return "";
}

VirtualHosts::VirtualHosts(const VirtualHostsOptions& options) : count_(options.count) {
  if (count_ < 1 || count_ > kMostHosts)
    throw TransportError(fmt::format("{} virtual hosts: make 1 to {}", count_, kMostHosts));
  const int number = int(::getpid());
  network_ = fmt::format("10.{}.{}.", 128 + number / 256 % 64, number % 256);
  try {
    make({"ip", "link", "add", bridge(), "type", "bridge"}, {"ip", "link", "del", bridge()});
    make({"ip", "addr", "add", network_ + "254/24", "dev", bridge()});
    make({"ip", "link", "set", bridge(), "up"});
    for (int host = 0; host < count_; ++host) add_host(host, options.gbit_per_s);
  } catch (...) {
    remove();
    throw;
  }
}

VirtualHosts::~VirtualHosts() { remove(); }

std::string VirtualHosts::name(int host) const {
  return fmt::format("convoy-{}-{}", ::getpid(), host);
}
std::string VirtualHosts::address(int host) const {
  return fmt::format("{}{}", network_, host + 1);
}
// Names of devices have at most 15 letters.
std::string VirtualHosts::bridge() const { return fmt::format("cv{}b", ::getpid()); }
std::string VirtualHosts::link(int host) const { return fmt::format("cv{}v{}", ::getpid(), host); }

void VirtualHosts::add_host(int host, double gbit_per_s) {
  const std::string space = name(host);
  make({"ip", "netns", "add", space}, {"ip", "netns", "del", space});
  make({"ip", "link", "add", link(host), "type", "veth", "peer", "name", "eth0", "netns", space},
       {"ip", "link", "del", link(host)});
  make({"ip", "link", "set", link(host), "master", bridge(), "up"});
  make({"ip", "-n", space, "addr", "add", address(host) + "/24", "dev", "eth0"});
  make({"ip", "-n", space, "link", "set", "lo", "up"});
  make({"ip", "-n", space, "link", "set", "eth0", "up"});
  if (gbit_per_s <= 0) return;
  make(shaped(link(host), gbit_per_s));
  Words inside = {"ip", "netns", "exec", space};
  const Words words = shaped("eth0", gbit_per_s);
  inside.insert(inside.end(), words.begin(), words.end());
  make(inside);
}

void VirtualHosts::make(const Words& command, Words undo) {
  const ChildResult done = run_child(command, ".", kDeadline_s);
  if (done.exit_code != 0 || done.late || !done.found)
    throw TransportError(fmt::format("cannot make virtual hosts: `{}` failed: {}",
                                     fmt::join(command, " "),
                                     done.output.substr(0, done.output.find('\n'))));
  if (!undo.empty()) undo_.push_back(std::move(undo));
}

// Never throws: what cannot be removed must not hide why it is.
void VirtualHosts::remove() {
  for (; !undo_.empty(); undo_.pop_back()) {
    try {
      run_child(undo_.back(), ".", kDeadline_s);
    } catch (const std::exception&) {
    }
  }
}

std::string VirtualHosts::hosts_file(int slots) const {
  std::string text;
  for (int host = 0; host < count_; ++host)
    text += fmt::format("node{} slots={} address={} agent=\"ip netns exec {}\"\n", host, slots,
                        address(host), name(host));
  return text;
}

}  // namespace convoy
