// Starts the ranks of a job on one host or many, passes on what they say, and ends them all when
// one fails that the job needs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "world/launch/hosts.h"
#include "world/launch/verdict.h"
#include "world/runtime.h"

namespace convoy {

inline constexpr int kMostRanks = 1024;

struct LaunchOptions {
  std::vector<std::string> command;   // what every rank runs
  int size = 0;                       // ranks; 0: one for every slot of the hosts
  int needed = 0;                     // the first so many, without which it ends; 0: all
  std::vector<HostEntry> hosts = {};  // empty: this host alone
  int servers = 0;                    // the last ranks that are such, and
  std::string place = {};             // where they are: see place_servers()
  std::string transport = {};         // shm, zmq; empty: shm on one host, zmq on several
  bool encrypt = true;                // the data of messages between hosts
  int cores_per_rank = 0;             // 0: divide all of a host
  double heartbeat_deadline_s = 5;    // a rank that is silent for so long is lost
  double timeout_s = kForever;        // for the whole job
  double start_timeout_s = 30;        // for the agents to answer
  std::string address = {};           // of this machine, as the hosts reach it; empty: found
  std::string program;                // this program, on every host
  std::string folder = {};            // where the ranks run
  std::map<std::string, std::string> environment = {};  // beside what a host has
  bool tag_output = false;                              // [rank] before every line
  bool tag_errors = true;
  int only_rank = -1;  // the one whose standard output passes; -1: all
  bool quiet = false;  // no notes
};

// Returns when every rank has ended and nothing of the job is left. Throws ConfigError before
// anything is started. The caller must not have other children.
LaunchResult launch(const LaunchOptions& options);

}  // namespace convoy
