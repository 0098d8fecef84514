// ZeroMQ as we use it: a context, sockets that close themselves, messages that may borrow their
// bytes. The only file that includes zmq.h is socket.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "world/job.h"

namespace convoy {

class ZmqContext {
 public:
  ZmqContext();
  ~ZmqContext();  // waits until its sockets are closed and their linger is over
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;
  void* get() const { return context_; }

 private:
  void* context_;
};

// One part of a message.
class ZmqMessage {
 public:
  ZmqMessage();
  explicit ZmqMessage(std::span<const std::byte> copied);
  // Refers to bytes of the caller until `release(hint)` is called, from any thread, at the latest
  // when the message and the socket it was sent on are gone.
  ZmqMessage(std::span<const std::byte> borrowed, void (*release)(void* bytes, void* hint),
             void* hint);
  ZmqMessage(ZmqMessage&& other) noexcept;
  ZmqMessage& operator=(ZmqMessage&& other) noexcept;
  ~ZmqMessage();

  std::span<const std::byte> bytes() const;
  std::string_view text() const;
  bool more() const;       // another part of the same message follows
  int connection() const;  // the file descriptor it came through; -1 if unknown
  void* get() { return raw_; }

 private:
  alignas(8) std::byte raw_[64];
};

class ZmqSocket {
 public:
  enum class Kind { router, dealer, pair, rep };
  ZmqSocket(ZmqContext& context, Kind kind);  // no high-water mark, no linger
  ~ZmqSocket();
  ZmqSocket(ZmqSocket&& other) noexcept;
  ZmqSocket& operator=(ZmqSocket&& other) noexcept;

  void serve_curve(const JobKeys& keys);  // who connects must have these keys (see Gatekeeper)
  // Connects to a server with the same keys, or with another public one.
  void use_curve(const JobKeys& keys) { use_curve(keys, keys.public_key); }
  void use_curve(const JobKeys& keys, const std::string& server_public_key);
  // A connection whose other side is silent ends within this time. Whatever comes is a sign of
  // life; ZeroMQ's own thread asks and answers.
  void heartbeat(double deadline_s);
  void never_reconnect();
  void limit_message_bytes(std::size_t bytes);  // a longer one ends its connection
  void linger(double seconds);

  std::string bind(const std::string& endpoint);  // gives what it was bound to
  void connect(const std::string& endpoint);

  // False when it cannot be done now: nothing is there; nobody is connected.
  bool send(ZmqMessage& part, bool more);
  bool recv(ZmqMessage& part);
  // All parts of the next message.
  bool recv_all(std::vector<ZmqMessage>& parts);

  void* get() const { return socket_; }
  int fd() const;  // readable when the socket has news for its thread, until that thread looks

 private:
  void* socket_ = nullptr;
};

// What happens to the connections of a socket. Lives in the thread that reads it.
class ZmqMonitor {
 public:
  enum class Kind { accepted, refused, disconnected };
  struct Event {
    Kind kind;
    int connection;  // file descriptor; -1 where it is gone already
  };
  ZmqMonitor(ZmqContext& context, ZmqSocket& watched);
  std::optional<Event> next();  // nothing: no more for now
  ZmqSocket& socket() { return socket_; }

 private:
  ZmqSocket socket_;
};

// Wakes a thread that sleeps in poll(). Rings from any thread; a ring before the sleep is kept.
class Doorbell {
 public:
  Doorbell();
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;
  void ring();
  bool rung();  // and is silent again
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Sleeps until a socket or the bell has something, or the time is over.
void zmq_sleep(std::span<ZmqSocket* const> sockets, const Doorbell& bell, double timeout_s);

// The Z85 text of a key of 32 bytes.
std::string z85_text(std::span<const std::byte> key);

}  // namespace convoy
