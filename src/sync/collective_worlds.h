// For tests: the worlds in which collectives must give the same answers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "world/inproc/inproc.h"

namespace convoy {

struct CollectiveWorld {
  std::string name;
  std::function<void(int size, const RankBody& body)> run;
};

// Hosts of `per_host` ranks each; the last may have fewer.
inline std::vector<int> hosts_of(int size, int per_host) {
  std::vector<int> host_of;
  for (int rank = 0; rank < size; ++rank) host_of.push_back(rank / per_host);
  return host_of;
}

inline std::vector<CollectiveWorld> collective_worlds() {
  const auto inproc = [](int per_host) {
    return [per_host](int size, const RankBody& body) {
      run_inproc(size, {.host_of = hosts_of(size, per_host)}, body);
    };
  };
  return {{"inproc_one_host", inproc(1000)},
          {"inproc_hosts_of_2", inproc(2)},
          {"inproc_hosts_of_3", inproc(3)},
          {"inproc_alone", inproc(1)}};
}

}  // namespace convoy
