// What a job will look like: decided, and checked, before anything is started.
#pragma once

#include <string>
#include <vector>

#include "world/launch/frames.h"
#include "world/launch/launcher.h"

namespace convoy {

struct PlannedHost {
  std::string name;
  std::string address;             // for Job::address
  std::vector<std::string> agent;  // the whole command
  std::vector<int> ranks;          // ascending
};

struct LaunchPlan {
  Job job;              // what all ranks have in common; no keys, no rendezvous yet
  std::string address;  // of this machine, for the rendezvous
  std::vector<PlannedHost> hosts;

  Part part(int host, const LaunchOptions& options) const;
  // The beginning of a line about a host; empty where there is but this one.
  std::string on_host(int host) const;
};

// Throws ConfigError.
LaunchPlan make_plan(const LaunchOptions& options);

}  // namespace convoy
