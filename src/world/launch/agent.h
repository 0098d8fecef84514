// The agent of a host: starts the host's ranks, passes on what they say and how they end.
#pragma once

namespace convoy {

struct AgentOptions {
  int in = 0;          // the launcher's frames; their end ends the ranks
  int out = 1;         // frames to the launcher
  int core_limit = 1;  // how many cores' worth of time this host gives
};

// Returns when all ranks have ended and nothing of them is left. A part that cannot be done is told
// to the launcher. Throws TransportError where the launcher does not speak as it should.
void run_agent(const AgentOptions& options);

}  // namespace convoy
