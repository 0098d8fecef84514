// Hosts that are this machine: network namespaces on a bridge of their own, each behind a link of a
// given rate. Only root can make them.
#pragma once

#include <string>
#include <vector>

namespace convoy {

struct VirtualHostsOptions {
  int count = 1;
  double gbit_per_s = 0;  // of each host's link, both ways; 0: as fast as it goes
};

// Why this process cannot make any ("only root can make network namespaces"); empty: it may try.
std::string virtual_hosts_refused();

// Made with this, and removed with it. Names and addresses are those of the process, which has at
// most one of these at a time.
class VirtualHosts {
 public:
  // Throws TransportError where the system does not let it; nothing is left then.
  explicit VirtualHosts(const VirtualHostsOptions& options);
  ~VirtualHosts();
  VirtualHosts(const VirtualHosts&) = delete;
  VirtualHosts& operator=(const VirtualHosts&) = delete;

  int count() const { return count_; }
  std::string name(int host) const;  // of the namespace
  std::string address(int host) const;
  // The text of a hosts file, as convoy train --hosts reads it.
  std::string hosts_file(int slots) const;

 private:
  std::string bridge() const;
  std::string link(int host) const;  // the end outside
  void add_host(int host, double gbit_per_s);
  void make(const std::vector<std::string>& command, std::vector<std::string> undo = {});
  void remove();

  int count_;
  std::string network_;                         // "10.200.7."
  std::vector<std::vector<std::string>> undo_;  // commands that remove what was made
};

}  // namespace convoy
