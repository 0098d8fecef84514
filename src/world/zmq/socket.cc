#include "world/zmq/socket.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "world/zmq/rendezvous.h"

namespace convoy {
namespace {

static_assert(sizeof(zmq_msg_t) == 64);

// Garbage that opens a connection and says nothing is dropped after this time.
constexpr int kHandshakeMs = 5000;

zmq_msg_t* raw(std::byte* bytes) { return reinterpret_cast<zmq_msg_t*>(bytes); }

[[noreturn]] void fail(const std::string& what) {
  throw TransportError(fmt::format("{}: {}", what, zmq_strerror(zmq_errno())));
}

void set(void* socket, int option, int value) {
  CHECK(zmq_setsockopt(socket, option, &value, sizeof value) == 0, "option {}: {}", option,
        zmq_strerror(zmq_errno()));
}

void set(void* socket, int option, const std::string& value) {
  if (zmq_setsockopt(socket, option, value.data(), value.size()) != 0)
    fail(fmt::format("socket option {}", option));
}

int milliseconds(double seconds) {
  return static_cast<int>(std::clamp(std::ceil(seconds * 1e3), 0.0, 1e9));
}

int type(ZmqSocket::Kind kind) {
  switch (kind) {
    case ZmqSocket::Kind::router:
      return ZMQ_ROUTER;
    case ZmqSocket::Kind::dealer:
      return ZMQ_DEALER;
    case ZmqSocket::Kind::pair:
      return ZMQ_PAIR;
    case ZmqSocket::Kind::rep:
      return ZMQ_REP;
  }
  return -1;
}

}  // namespace

ZmqContext::ZmqContext() : context_(zmq_ctx_new()) {
  if (!context_) fail("cannot start ZeroMQ");
}

ZmqContext::~ZmqContext() {
  while (zmq_ctx_term(context_) != 0 && zmq_errno() == EINTR) {
  }
}

ZmqMessage::ZmqMessage() { zmq_msg_init(raw(raw_)); }

ZmqMessage::ZmqMessage(std::span<const std::byte> copied) {
  if (zmq_msg_init_size(raw(raw_), copied.size()) != 0) throw std::bad_alloc();
  if (!copied.empty()) std::memcpy(zmq_msg_data(raw(raw_)), copied.data(), copied.size());
}

ZmqMessage::ZmqMessage(std::span<const std::byte> borrowed, void (*release)(void*, void*),
                       void* hint) {
  if (zmq_msg_init_data(raw(raw_), const_cast<std::byte*>(borrowed.data()), borrowed.size(),
                        release, hint) != 0)
    throw std::bad_alloc();
}

ZmqMessage::ZmqMessage(ZmqMessage&& other) noexcept : ZmqMessage() {
  zmq_msg_move(raw(raw_), raw(other.raw_));
}

ZmqMessage& ZmqMessage::operator=(ZmqMessage&& other) noexcept {
  zmq_msg_move(raw(raw_), raw(other.raw_));
  return *this;
}

ZmqMessage::~ZmqMessage() { zmq_msg_close(raw(raw_)); }

std::span<const std::byte> ZmqMessage::bytes() const {
  zmq_msg_t* message = raw(const_cast<std::byte*>(raw_));
  return {static_cast<const std::byte*>(zmq_msg_data(message)), zmq_msg_size(message)};
}

std::string_view ZmqMessage::text() const {
  const std::span<const std::byte> own = bytes();
  return {reinterpret_cast<const char*>(own.data()), own.size()};
}

bool ZmqMessage::more() const { return zmq_msg_more(raw(const_cast<std::byte*>(raw_))) != 0; }

int ZmqMessage::connection() const {
  return zmq_msg_get(raw(const_cast<std::byte*>(raw_)), ZMQ_SRCFD);
}

ZmqSocket::ZmqSocket(ZmqContext& context, Kind kind)
    : socket_(zmq_socket(context.get(), type(kind))) {
  if (!socket_) fail("cannot open a socket");
  set(socket_, ZMQ_SNDHWM, 0);
  set(socket_, ZMQ_RCVHWM, 0);
  set(socket_, ZMQ_LINGER, 0);
  set(socket_, ZMQ_HANDSHAKE_IVL, kHandshakeMs);
}

ZmqSocket::~ZmqSocket() {
  if (socket_) zmq_close(socket_);
}

ZmqSocket::ZmqSocket(ZmqSocket&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}

ZmqSocket& ZmqSocket::operator=(ZmqSocket&& other) noexcept {
  std::swap(socket_, other.socket_);
  return *this;
}

void ZmqSocket::serve_curve(const JobKeys& keys) {
  set(socket_, ZMQ_CURVE_SERVER, 1);
  set(socket_, ZMQ_CURVE_SECRETKEY, keys.secret_key);
  set(socket_, ZMQ_ZAP_DOMAIN, std::string("convoy"));
}

void ZmqSocket::use_curve(const JobKeys& keys, const std::string& server_public_key) {
  set(socket_, ZMQ_CURVE_SERVERKEY, server_public_key);
  set(socket_, ZMQ_CURVE_PUBLICKEY, keys.public_key);
  set(socket_, ZMQ_CURVE_SECRETKEY, keys.secret_key);
}

// In the worst case the silence begins just after an answer, and a whole interval passes before the
// question that finds none.
void ZmqSocket::heartbeat(double deadline_s) {
  set(socket_, ZMQ_HEARTBEAT_IVL, std::max(1, milliseconds(deadline_s / 8)));
  set(socket_, ZMQ_HEARTBEAT_TIMEOUT, std::max(1, milliseconds(deadline_s * 3 / 4)));
}

void ZmqSocket::never_reconnect() { set(socket_, ZMQ_RECONNECT_IVL, -1); }

void ZmqSocket::limit_message_bytes(std::size_t bytes) {
  const auto limit = static_cast<std::int64_t>(bytes);
  zmq_setsockopt(socket_, ZMQ_MAXMSGSIZE, &limit, sizeof limit);
}

void ZmqSocket::linger(double seconds) { set(socket_, ZMQ_LINGER, milliseconds(seconds)); }

std::string ZmqSocket::bind(const std::string& endpoint) {
  if (zmq_bind(socket_, endpoint.c_str()) != 0) fail(fmt::format("cannot listen on {}", endpoint));
  std::array<char, 256> bound{};
  std::size_t length = bound.size();
  zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, bound.data(), &length);
  return bound.data();
}

void ZmqSocket::connect(const std::string& endpoint) {
  if (zmq_connect(socket_, endpoint.c_str()) != 0)
    fail(fmt::format("cannot connect to {}", endpoint));
}

int ZmqSocket::fd() const {
  int fd = -1;
  std::size_t length = sizeof fd;
  zmq_getsockopt(socket_, ZMQ_FD, &fd, &length);
  return fd;
}

bool ZmqSocket::send(ZmqMessage& part, bool more) {
  while (zmq_msg_send(static_cast<zmq_msg_t*>(part.get()), socket_,
                      ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) < 0) {
    if (zmq_errno() == EINTR) continue;
    if (zmq_errno() == EAGAIN || zmq_errno() == EHOSTUNREACH) return false;
    fail("cannot send");
  }
  return true;
}

bool ZmqSocket::recv(ZmqMessage& part) {
  while (zmq_msg_recv(static_cast<zmq_msg_t*>(part.get()), socket_, ZMQ_DONTWAIT) < 0) {
    if (zmq_errno() == EINTR) continue;
    if (zmq_errno() == EAGAIN) return false;
    fail("cannot receive");
  }
  return true;
}

bool ZmqSocket::recv_all(std::vector<ZmqMessage>& parts) {
  parts.clear();
  do {
    ZmqMessage part;
    if (!recv(part)) return false;
    parts.push_back(std::move(part));
  } while (parts.back().more());
  return true;
}

namespace {

ZmqSocket monitor_of(ZmqContext& context, ZmqSocket& watched) {
  static std::atomic<int> count{0};
  const std::string endpoint = fmt::format("inproc://monitor-{}", count++);
  constexpr int kEvents = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                          ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                          ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
  if (zmq_socket_monitor(watched.get(), endpoint.c_str(), kEvents) != 0)
    fail("cannot watch a socket");
  ZmqSocket reader(context, ZmqSocket::Kind::pair);
  reader.connect(endpoint);
  return reader;
}

}  // namespace

ZmqMonitor::ZmqMonitor(ZmqContext& context, ZmqSocket& watched)
    : socket_(monitor_of(context, watched)) {}

std::optional<ZmqMonitor::Event> ZmqMonitor::next() {
  std::vector<ZmqMessage> parts;
  while (socket_.recv_all(parts)) {
    const std::span<const std::byte> bytes = parts[0].bytes();
    if (bytes.size() < 6) continue;
    std::uint16_t event = 0;
    std::int32_t value = 0;
    std::memcpy(&event, bytes.data(), sizeof event);
    std::memcpy(&value, bytes.data() + sizeof event, sizeof value);
    if (event == ZMQ_EVENT_ACCEPTED) return Event{Kind::accepted, value};
    if (event == ZMQ_EVENT_DISCONNECTED) return Event{Kind::disconnected, value};
    return Event{Kind::refused, -1};
  }
  return std::nullopt;
}

Doorbell::Doorbell() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) throw TransportError(fmt::format("cannot open an eventfd: {}", strerror(errno)));
}

Doorbell::~Doorbell() { close(fd_); }

void Doorbell::ring() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
}

bool Doorbell::rung() {
  std::uint64_t count = 0;
  return read(fd_, &count, sizeof count) == sizeof count;
}

void zmq_sleep(std::span<ZmqSocket* const> sockets, const Doorbell& bell, double timeout_s) {
  std::vector<zmq_pollitem_t> items;
  items.reserve(sockets.size() + 1);
  items.push_back({nullptr, bell.fd(), ZMQ_POLLIN, 0});
  for (const ZmqSocket* socket : sockets) items.push_back({socket->get(), 0, ZMQ_POLLIN, 0});
  const long timeout_ms = std::isinf(timeout_s) ? -1 : milliseconds(timeout_s);
  zmq_poll(items.data(), static_cast<int>(items.size()), timeout_ms);
}

JobKeys make_job_keys() {
  std::array<char, 41> public_key{}, secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) fail("cannot make keys");
  return {.public_key = public_key.data(), .secret_key = secret_key.data()};
}

std::string z85_text(std::span<const std::byte> key) {
  std::array<char, 41> text{};
  if (key.size() != 32 ||
      !zmq_z85_encode(text.data(), reinterpret_cast<const std::uint8_t*>(key.data()), key.size()))
    return "";
  return text.data();
}

}  // namespace convoy
