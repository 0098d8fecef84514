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
  int cores = 0;  // that the rank may count on: the threads to compute with; 0: all of the host
  bool oversubscribed = false;  // the host has more ranks than cores: waiting must not spin

  std::vector<int> ranks_of_host() const;  // those that share the own rank's host, ascending

  std::string to_json() const;
  static Job from_json(const std::string& text);  // throws ConfigError
};

// The launcher hands a Job over in an inherited file descriptor whose number is in this variable,
// so that no key shows in a command line or an environment.
inline constexpr const char* kJobVariable = "CONVOY_JOB_FD";

// The Job that this process was started with. Nothing when the launcher did not start it. Throws
// ConfigError where something between the launcher and this process closed the descriptor.
std::optional<Job> job_of_process();

// Tells the launcher why this process is about to fail, for its one line about the end of the job;
// `lost` is the peer whose loss is the cause, -1 where it is another. False where no launcher
// started the process.
bool report_failure(const std::string& why, int lost = -1) noexcept;

// What the process behind a Job's descriptor has reported; empty `why`: nothing.
struct FailureReport {
  std::string why;
  int lost = -1;
};
FailureReport read_failure_report(int job_fd);

// A rank's Runtime and Transport, alive as long as this.
class Membership {
 public:
  virtual ~Membership() = default;
  virtual World world() = 0;
};

// Enters the job: returns when every rank is there, or throws TransportError after `timeout_s`.
// Ranks that run another build or other arguments than rank 0 make it throw ConfigError everywhere.
std::unique_ptr<Membership> join(const Job& job, double timeout_s);

}  // namespace convoy
