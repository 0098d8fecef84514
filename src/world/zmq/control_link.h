// A rank's line to the rendezvous, in a thread of its own, so that losses are heard and positions
// are told while the rank computes. Calls are for any task; CURVE always.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "world/transport.h"
#include "world/zmq/message.h"
#include "world/zmq/rendezvous.h"
#include "world/zmq/socket.h"

namespace convoy {

struct Loss {
  int rank;
  std::string why;
};

class ControlLink {
 public:
  // `ring` is called, from the link's own thread, when there is a loss to take.
  ControlLink(ZmqContext& context, const Job& job, std::function<void()> ring);
  ~ControlLink();
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;

  // Says hello; gives the endpoints of all ranks when all have come. Throws TransportError.
  std::vector<std::string> join(const RankHello& hello, double timeout_s);

  // This rank has all its connections; returns when every rank has. Throws TransportError.
  void await_connected(double timeout_s);

  std::vector<Loss> take_losses();
  bool rendezvous_lost();

  void report_lost(int rank, const std::string& why);
  void fail(const std::string& why);  // waits for the answer, at most a second
  void leave();                       // the same

  void publish(const Position& position);
  // Asks for the positions of all ranks, if what is known is not fresh; waits a quarter of a second
  // at most.
  std::optional<Sighting> last_seen(int rank);

 private:
  void serve();
  void take(const ControlMessage& message);
  void take_positions(const ControlMessage& message);
  double send_waiting();  // gives the time to sleep
  void post(ControlMessage message);
  bool post_and_await_answer(ControlMessage message);
  void check_joining();
  std::string missing_ranks(std::unique_lock<std::mutex>& lock);

  const int rank_;
  const int size_;
  const std::string endpoint_;
  const std::function<void()> ring_;
  ZmqSocket socket_;
  ZmqMonitor monitor_;
  Doorbell bell_;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool ending_ = false;
  std::deque<ControlMessage> outbox_;
  std::vector<std::string> table_;
  bool all_connected_ = false;
  std::string refusal_;
  std::optional<std::vector<std::uint64_t>> missing_;
  std::vector<Loss> losses_;
  bool rendezvous_lost_ = false;
  int heard_ = 0;
  std::optional<Position> unsent_;
  double last_sent_s_ = -1;
  struct Seen {
    Position position;
    double at_s;
  };
  std::vector<std::optional<Seen>> seen_;
  double asked_at_s_ = -1;
  int answers_ = 0;
  std::thread thread_;
};

}  // namespace convoy
