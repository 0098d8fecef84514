// The contract of Transport as cases, and the worlds that are held to it. A new transport names its
// worlds in a function of its own folder and adds that to contract_worlds().
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "world/world.h"

namespace convoy {

// Ends the calling rank as abruptly as its world can; does not return.
using Die = std::function<void()>;

// What one rank does. Throws when the contract is broken, which is how a rank that is a process can
// tell.
using ContractBody = std::function<void(World, const Die&)>;

struct ContractCase {
  std::string name;        // ends in Slow where it takes long
  std::vector<int> sizes;  // numbers of ranks to run it with
  ContractBody body;
};

struct ContractWorld {
  std::string name;
  // Runs `body` on every rank; returns when all have ended, throws if one threw. A rank that died
  // by Die has not failed.
  std::function<void(int size, const ContractBody& body)> run;
  bool survives_death = true;  // false: cases in which a rank dies are left out
  bool slow = false;           // all its cases belong to the slow set
};

std::vector<ContractCase> contract_cases();        // all ranks stay
std::vector<ContractCase> death_contract_cases();  // some die

std::vector<ContractWorld> inproc_contract_worlds();
std::vector<ContractWorld> sim_contract_worlds();
std::vector<ContractWorld> shaped_contract_worlds();
std::vector<ContractWorld> shm_contract_worlds();
std::vector<ContractWorld> zmq_contract_worlds();
std::vector<ContractWorld> mpi_contract_worlds();  // none unless mpirun started this program

inline std::vector<ContractWorld> contract_worlds() {
  std::vector<ContractWorld> worlds;
  for (const auto& list :
       {inproc_contract_worlds(), sim_contract_worlds(), shaped_contract_worlds(),
        shm_contract_worlds(), zmq_contract_worlds(), mpi_contract_worlds()})
    worlds.insert(worlds.end(), list.begin(), list.end());
  return worlds;
}

}  // namespace convoy
