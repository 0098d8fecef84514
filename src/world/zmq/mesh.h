// The messages of one rank to and from ranks of other hosts. Every rank binds one ROUTER and has a
// DEALER to each peer; data flows only from a DEALER to a ROUTER, so that a heartbeat, which the
// ROUTER's side asks for, never queues behind data. ZeroMQ's own thread moves bytes and answers
// heartbeats; all calls here are the owner's.
//
// Memory stays bounded without high-water marks: a short message is sent at once as long as the
// pair's budget of unread bytes lasts ("eager"); else it is offered by its head, and its bytes
// follow, within a window, when the receive is posted ("accepted").
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "world/inbox.h"
#include "world/zmq/control_link.h"
#include "world/zmq/handshake.h"
#include "world/zmq/message.h"
#include "world/zmq/socket.h"
#include "world/zmq/stranger_log.h"

namespace convoy {

class Mesh {
 public:
  // `own_address`: to listen on. `bell` wakes the owner.
  Mesh(ZmqContext& context, const Job& job, const std::string& own_address, Inbox& inbox,
       Doorbell& bell);
  ~Mesh();  // waits until no buffer of a send is in use
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  const std::string& endpoint() const { return endpoint_; }

  // Connects with the peers and proves itself to each; returns when all connections stand, both
  // ways. Throws TransportError.
  void connect(const std::vector<int>& peers, const std::vector<std::string>& endpoints,
               ControlLink& control, double timeout_s);

  Ticket send(int to, Tag tag, std::span<const std::byte> bytes);
  // A send that is under way goes on from a copy. Waits until ZeroMQ lets go of the caller's
  // buffer. False: the ticket is not one of a send under way.
  bool cancel(Ticket ticket);

  // Moves what can be moved; true if there was anything. Tells the Inbox's Matcher who is lost, and
  // gives those whose loss the rendezvous has not told.
  bool progress();
  std::vector<Loss> take_found_lost() { return std::exchange(found_lost_, {}); }
  // A peer is said to be lost: it is, as soon as what it sent is taken.
  void suspect(int rank, const std::string& why, bool rendezvous_knows);

  // The time until progress() has something to do without any socket or bell.
  double next_due_s() const;
  // Call before sleeping: false if there is something to do first. Then the bell will ring when a
  // send is done.
  bool may_sleep();
  void awake() { asleep_.store(false); }
  std::vector<ZmqSocket*> sockets() { return {&in_, &monitor_.socket()}; }

  bool flushed() const;
  void say_bye();
  bool bye_heard() const;  // by all who are still there
  void linger(double seconds);

 private:
  static constexpr std::ptrdiff_t kEagerBudget = 16 << 20;
  static constexpr std::ptrdiff_t kStreamBudget = 8 << 20;
  static constexpr std::size_t kMessageCost = 256;  // of the budget, for an eager message's head

  struct Outgoing {
    Mesh* mesh = nullptr;
    Ticket ticket = 0;
    std::span<const std::byte> bytes{};
    std::size_t sent = 0;
    std::atomic<int> borrowed = 0;        // segments that ZeroMQ still reads
    std::unique_ptr<std::byte[]> copy{};  // of what was cancelled
  };
  struct Inbound {
    Inbox::Arrival arrival;
    std::size_t total;
    std::size_t received;
    bool eager;
  };
  struct Peer {
    std::optional<ZmqSocket> out;  // none: not a peer, or gone
    std::string line;              // routing id of its connection
    int connection = -1;           // file descriptor of its connection
    bool cut = false;              // its connection ended; what it sent before may still wait
    bool said_bye = false;
    bool heard_bye = false;
    std::optional<std::string> suspicion{};
    bool rendezvous_knows = false;  // of the loss, by us or others
    bool confirmed = false;         // by the rendezvous
    double suspected_until_s = 0;
    std::uint64_t next_id = 1;
    std::ptrdiff_t eager_room = kEagerBudget;
    std::ptrdiff_t stream_room = kStreamBudget;
    std::size_t owed_eager = 0;
    std::size_t owed_stream = 0;
    std::map<std::uint64_t, std::unique_ptr<Outgoing>> sends{};
    std::deque<std::uint64_t> accepted{};  // sends whose receive is posted, not fully sent
    std::unordered_map<std::uint64_t, Inbound> inbound{};
  };
  struct Caller {  // somebody who has said hello and not proved it
    int rank;
    Nonce client_nonce;
    Nonce server_nonce;
  };

  static void release(void* bytes, void* hint);

  // connecting
  Handshake handshake(int client, int server) const;
  void take_from_caller(const std::string& line, const Frame& frame, int connection);
  void take_challenge(int rank, const Frame& frame, const Nonce& nonce);
  bool connected() const;

  // sending
  bool send_frame(int to, const Frame& frame, Outgoing* lender = nullptr);
  void send_segment(int to, std::uint64_t id, Outgoing& send);
  void pump(int to);
  void detach(Peer& peer, std::uint64_t id);
  void reap();

  // receiving
  bool take_messages();
  void take(int from, const Frame& frame);
  void take_begin(int from, const Frame& frame);
  void take_segment(int from, const Frame& frame);
  void give_credit(int to);
  void accept_wanted();
  void watch_connections();
  void settle();
  void part(int rank, const std::optional<std::string>& why);

  const Job& job_;
  Inbox& inbox_;
  Doorbell& bell_;
  ZmqContext& context_;
  ZmqSocket in_;
  ZmqMonitor monitor_;
  std::string endpoint_;
  StrangerLog strangers_;
  std::vector<Peer> peers_;  // by rank
  std::unordered_map<std::string, int> rank_of_line_;
  std::map<std::string, Caller> callers_;
  std::unordered_map<Inbox::Arrival, std::pair<int, std::uint64_t>> offers_;
  std::vector<Loss> found_lost_;
  std::vector<ZmqMessage> parts_;
  std::uint64_t paused_ = 0;  // a send that is being cancelled
  bool starving_ = false;     // a peer may wait for credit
  int troubled_ = 0;          // peers that are cut off or suspected
  bool connecting_ = true;
  std::atomic<bool> asleep_ = false;
  std::atomic<std::uint32_t> returned_ = 0;  // sends whose borrowed bytes all came back
  std::uint32_t returned_seen_ = 0;
};

}  // namespace convoy
