// For tests: the worlds in which collectives must give the same answers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "world/inproc/inproc.h"
#include "world/mpi/mpi_world.h"
#include "world/shm/shm_test_support.h"
#include "world/sim/sim.h"

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
  const auto sim = [](int per_host, std::uint64_t seed) {
    return [per_host, seed](int size, const RankBody& body) {
      run_sim({.ranks = size, .host_of = hosts_of(size, per_host)}, {.seed = seed}, body);
    };
  };
  const auto processes = [](int size, const RankBody& body) {
    shm::run_processes(shm::small_segment(size), body);
  };
  // Every rank that mpirun started (tests/mpi.cmake) makes the same calls.
  const auto mpi = [](int size, const RankBody& body) {
    if (size <= mpi_size()) run_mpi(size, body);
  };
  if (started_by_mpi()) return {{"mpi", mpi}};
  return {{"inproc_one_host", inproc(1000)}, {"inproc_hosts_of_2", inproc(2)},
          {"inproc_hosts_of_3", inproc(3)},  {"inproc_alone", inproc(1)},
          {"sim_alone", sim(1, 0)},          {"sim_hosts_of_4", sim(4, 7)},
          {"shm_processes", processes}};
}

}  // namespace convoy
