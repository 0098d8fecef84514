// Where the ranks of a job meet. The launcher keeps a Rendezvous; every rank of the job joins
// through it, learns where the others listen, and hears from it who is lost. Only who has the job's
// keys can talk to it (CURVE); what others try is logged once and has no effect.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "world/job.h"

namespace convoy {

// Fresh keys for one job.
JobKeys make_job_keys();

// What a rank tells about itself when it comes.
struct RankHello {
  std::string job_id;
  int rank = 0;
  std::string host;
  std::int64_t pid = 0;
  std::string build;     // of the program; all ranks must have the same
  std::string endpoint;  // where the rank listens for the data of its peers
};

// Serves in a task of its own from construction to destruction. All calls are for any task.
class Rendezvous {
 public:
  struct Options {
    std::string job_id;
    int size = 1;
    JobKeys keys;
    std::string address = "127.0.0.1";  // to listen on; the system picks the port
    // A rank failed or a peer lost it. At most once per rank, from the Rendezvous's own task; must
    // not call back into it. Not called for what announce_lost() itself announced, nor for a rank
    // that has left properly.
    std::function<void(int rank, const std::string& why)> on_lost;
  };

  explicit Rendezvous(Options options);  // throws TransportError where it cannot listen
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  const std::string& endpoint() const;  // tcp://address:port, for Job::rendezvous
  int port() const;

  std::vector<int> missing() const;        // ranks that have not come yet, ascending
  std::vector<RankHello> members() const;  // those that have come, by rank

  // Tells every other rank that this one is lost, e.g. because the launcher saw its process end.
  // The first reason for a rank is the one that stays.
  void announce_lost(int rank, const std::string& why);

  // What the rank was last busy with. Nothing if it never told.
  std::optional<Sighting> last_seen(int rank) const;

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

// A Transport of a job with a Rendezvous.
class RendezvousTransport : public Transport {
 public:
  // This rank gives up: tells the Rendezvous, and through it everybody, why. Returns when that was
  // heard, at the latest after a second. Call it before the Transport is destroyed without close().
  virtual void fail(const std::string& why) = 0;
};

// Enters the job through job.rendezvous: returns when every rank is there and connected, or throws
// TransportError, after `timeout_s` at the latest; it then names the ranks that are missing.
std::unique_ptr<RendezvousTransport> join_zmq(const Job& job, double timeout_s);

}  // namespace convoy
