#include "world/zmq/local_host.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"

namespace convoy {
namespace {

int place_among(const std::vector<int>& ranks, int rank) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  CHECK(found != ranks.end(), "rank {} is not among those of its host", rank);
  return static_cast<int>(found - ranks.begin());
}

}  // namespace

LocalHost::LocalHost(const Job& job, Inbox& inbox, Doorbell& bell, Mesh& mesh, double timeout_s)
    : bell_(bell),
      mesh_(mesh),
      segment_(shm::Segment::attach(job.segment_fd)),
      ranks_(job.ranks_of_host()),
      place_of_(job.size, -1),
      neighbours_(segment_, place_among(ranks_, job.rank)),
      links_(neighbours_, ranks_, inbox),
      memory_(neighbours_, links_, ranks_) {
  for (std::size_t place = 0; place < ranks_.size(); ++place)
    place_of_[ranks_[place]] = static_cast<int>(place);
  neighbours_.meet(timeout_s);
  watcher_ = std::thread([this] { watch(); });
}

LocalHost::~LocalHost() {
  ending_ = true;
  start_.ring();
  bell_.ring();
  watcher_.join();
}

// A wake that comes when nobody watches is seen by the look that follows arm().
void LocalHost::arm() {
  if (!armed_.exchange(true)) start_.ring();
}

void LocalHost::watch() {
  std::vector<pollfd> watched = {{bell_.fd(), POLLIN, 0}};
  for (const ZmqSocket* socket : mesh_.sockets()) watched.push_back({socket->fd(), POLLIN, 0});
  for (;;) {
    zmq_sleep({}, start_, kForever);
    start_.rung();
    if (ending_) return;
    while (poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) {
    }
    armed_ = false;
    neighbours_.ring_self();
  }
}

}  // namespace convoy
