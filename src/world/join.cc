// How a rank gets into its job, whatever carries the messages.
#include <exception>

#include "base/clock.h"
#include "world/agreement.h"
#include "world/job.h"
#include "world/shm/shm_transport.h"
#include "world/thread_runtime.h"
#include "world/zmq/rendezvous.h"

namespace convoy {
namespace {

class ShmMembership final : public Membership {
 public:
  explicit ShmMembership(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}
  World world() override { return {runtime_, *transport_}; }

 private:
  ThreadRuntime runtime_;
  std::unique_ptr<Transport> transport_;
};

class ZmqMembership final : public Membership {
 public:
  explicit ZmqMembership(std::unique_ptr<RendezvousTransport> transport)
      : transport_(std::move(transport)) {}
  // Left by an exception: the others shall know at once.
  ~ZmqMembership() override {
    if (std::uncaught_exceptions() > 0) transport_->fail("an error ended its part");
  }
  World world() override { return {runtime_, *transport_}; }

 private:
  ThreadRuntime runtime_;
  std::unique_ptr<RendezvousTransport> transport_;
};

std::unique_ptr<Membership> enter(const Job& job, double timeout_s) {
  if (job.transport == "zmq") return std::make_unique<ZmqMembership>(join_zmq(job, timeout_s));
  if (job.transport != "shm")
    throw ConfigError("transport {} is unknown (known: shm, zmq)", job.transport);
  return std::make_unique<ShmMembership>(join_shm(
      job.segment_fd,
      {.rank = job.rank, .size = job.size, .ranks = job.ranks_of_host(), .timeout_s = timeout_s}));
}

}  // namespace

std::unique_ptr<Membership> join(const Job& job, double timeout_s) {
  const double end_s = now_s() + timeout_s;
  std::unique_ptr<Membership> membership = enter(job, timeout_s);
  agree(membership->world().transport, identity_of_process(job.hosts[job.host_of[job.rank]]),
        end_s - now_s());
  return membership;
}

}  // namespace convoy
