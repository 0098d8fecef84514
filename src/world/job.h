// What the launcher tells a rank that it starts, and how the rank gets into the world of the job.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "world/world.h"

namespace convoy {

// The keys of one job (CURVE, Z85 text). Who has the secret one belongs to the job.
struct JobKeys {
  std::string public_key;
  std::string secret_key;
};

struct Job {
  std::string id;  // 16 hexadecimal digits, different for every job
  int rank = 0;
  int size = 1;
  std::vector<std::string> hosts;  // names, in the order of the hosts file
  std::vector<int> host_of;        // for every rank, its place in hosts
  std::string transport;           // shm or zmq
  int segment_fd =
      -1;  // the host's shared memory, inherited from the launcher; -1 where there is none
  std::string
      rendezvous;  // where the launcher listens (tcp://address:port); empty where nobody needs it
  std::string address;  // the own address towards other hosts; empty: found by asking the system
  JobKeys keys;
  bool encrypt = true;  // false: the data of messages in plain; hello and control are authenticated
                        // all the same
  double heartbeat_deadline_s = 5;

  std::vector<int> ranks_of_host() const;  // those that share the own rank's host, ascending

  std::string to_json() const;
  static Job from_json(const std::string& text);  // throws ConfigError
};

// The launcher hands a Job over in an inherited file descriptor whose number is in this variable,
// so that no key shows in a command line or an environment.
inline constexpr const char* kJobVariable = "CONVOY_JOB_FD";

// The Job that this process was started with. Nothing when the launcher did not start it.
std::optional<Job> job_of_process();

// A rank's Runtime and Transport, alive as long as this.
class Membership {
 public:
  virtual ~Membership() = default;
  virtual World world() = 0;
};

// Enters the job: returns when every rank is there, or throws TransportError after `timeout_s`.
std::unique_ptr<Membership> join(const Job& job, double timeout_s);

}  // namespace convoy
