// How a command gets its ranks: those of the job that started it, or ranks of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "world/world.h"

namespace convoy {

struct RankOptions {
  int size = 0;            // 0: as many as the job has, or default_size
  std::string transport;   // inproc, shm or zmq; empty: the job's, or shm
  std::string hosts = {};  // file of the machines to start them on; empty: this one
  int default_size = 2;
  int servers = 0;               // the last ranks that are such, and
  std::string place = {};        // on which hosts: see place_servers()
  int needed = 0;                // the first so many, without which the job ends; 0: all
  const char* size_flag = "-n";  // for messages
};

void add_rank_options(CLI::App& command, RankOptions& options);

// What carries the messages of this process: the job's, or what was asked for.
std::string transport_name(const RankOptions& options);

// Runs `body` on every rank and returns when this process has nothing more to do. Within a job
// (convoy launch, mpirun) it runs on the own rank. Otherwise the ranks are started here: as
// threads, or as processes that run this command again, of which only rank 0 writes to standard
// output. `body` must close its transport. Throws ConfigError for options that contradict the job.
void run_ranks(const RankOptions& options, const RankBody& body);

}  // namespace convoy
