#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "world/patience.h"
#include "world/zmq/mesh.h"

namespace convoy {
namespace {

constexpr std::size_t kMostCallers = 4096;  // strangers must not fill the memory

}  // namespace

Mesh::Mesh(ZmqContext& context, const Job& job, const std::string& own_address, Inbox& inbox,
           Doorbell& bell)
    : job_(job),
      inbox_(inbox),
      bell_(bell),
      context_(context),
      in_(context, ZmqSocket::Kind::router),
      monitor_(context, in_),
      strangers_(fmt::format("rank {}", job.rank)),
      peers_(job.size) {
  if (job.encrypt) in_.serve_curve(job.keys);
  in_.heartbeat(job.heartbeat_deadline_s);
  in_.limit_message_bytes(kSegmentBytes + 1024);
  endpoint_ = in_.bind(fmt::format("tcp://{}:*", own_address));
}

Mesh::~Mesh() {
  for (Peer& peer : peers_) peer.out.reset();
  for (Peer& peer : peers_)
    for (const auto& [id, send] : peer.sends)
      while (send->borrowed.load() != 0) zmq_sleep({}, bell_, 0.001);
}

Handshake Mesh::handshake(int client, int server) const {
  return {.secret = job_.keys.secret_key, .job_id = job_.id, .client = client, .server = server};
}

void Mesh::connect(const std::vector<int>& peers, const std::vector<std::string>& endpoints,
                   ControlLink& control, double timeout_s) {
  std::map<int, Nonce> waiting;  // peers whose challenge has not come
  for (const int rank : peers) {
    ZmqSocket& out = peers_[rank].out.emplace(context_, ZmqSocket::Kind::dealer);
    if (job_.encrypt) out.use_curve(job_.keys);
    out.never_reconnect();
    out.limit_message_bytes(kSegmentBytes);
    out.connect(endpoints[rank]);
    const Nonce& nonce = waiting.emplace(rank, fresh_nonce()).first->second;
    send_frame(rank,
               {.kind = FrameKind::hello, .tag = static_cast<Tag>(job_.rank), .payload = nonce});
  }
  const Patience patience(timeout_s);
  while (!waiting.empty() || !connected()) {
    progress();
    for (const int rank : peers)
      if (peers_[rank].suspicion || !peers_[rank].out)
        throw PeerLost(rank, "it ended while the ranks connected");
    std::vector<ZmqSocket*> watched = sockets();
    for (auto one = waiting.begin(); one != waiting.end();) {
      ZmqSocket& out = *peers_[one->first].out;
      watched.push_back(&out);
      if (!out.recv_all(parts_)) {
        ++one;
        continue;
      }
      const auto frame =
          parts_.size() == 2 ? decode_frame(parts_[0].bytes(), parts_[1].bytes()) : std::nullopt;
      if (frame) take_challenge(one->first, *frame, one->second);
      one = waiting.erase(one);
    }
    if (const std::vector<Loss> losses = control.take_losses(); !losses.empty())
      throw PeerLost(losses[0].rank, losses[0].why);
    if (control.rendezvous_lost()) throw TransportError("the launcher is gone");
    if (patience.over()) {
      for (const int rank : peers)
        if (waiting.contains(rank) || peers_[rank].line.empty())
          throw TransportError(fmt::format("rank {}: no connection with rank {} at {} within {} s",
                                           job_.rank, rank, endpoints[rank], timeout_s));
    }
    bell_.rung();
    if (!waiting.empty() || !connected())
      zmq_sleep(watched, bell_, std::min(patience.left_s(), 0.2));
  }
  connecting_ = false;
  callers_.clear();
}

bool Mesh::connected() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return !peer.out || !peer.line.empty(); });
}

// The peer shows that it has the key; then so do we.
void Mesh::take_challenge(int rank, const Frame& frame, const Nonce& nonce) {
  Handshake shake = handshake(job_.rank, rank);
  shake.client_nonce = nonce;
  if (frame.kind == FrameKind::challenge) {
    std::memcpy(shake.server_nonce.data(), frame.payload.data(), kNonceBytes);
    if (same_code(shake.server_code(), frame.payload.subspan(kNonceBytes))) {
      const Code code = shake.client_code();
      send_frame(rank,
                 {.kind = FrameKind::proof, .tag = static_cast<Tag>(job_.rank), .payload = code});
      return;
    }
  }
  throw TransportError(
      fmt::format("rank {}: who answers for rank {} does not have the job's key", job_.rank, rank));
}

// A connection that has not proved yet whose it is.
void Mesh::take_from_caller(const std::string& line, const Frame& frame, int connection) {
  const int rank = static_cast<int>(frame.tag);
  const bool hello = frame.kind == FrameKind::hello, proof = frame.kind == FrameKind::proof;
  if (!connecting_ || (!hello && !proof) || rank >= job_.size || rank == job_.rank)
    return strangers_.note();
  if (hello) {
    if (callers_.size() >= kMostCallers || callers_.contains(line)) return strangers_.note();
    Caller& caller = callers_[line] = {rank, {}, fresh_nonce()};
    std::memcpy(caller.client_nonce.data(), frame.payload.data(), kNonceBytes);
    Handshake shake = handshake(rank, job_.rank);
    shake.client_nonce = caller.client_nonce;
    shake.server_nonce = caller.server_nonce;
    std::array<std::byte, kNonceBytes + kCodeBytes> answer;
    const Code code = shake.server_code();
    std::copy(caller.server_nonce.begin(), caller.server_nonce.end(), answer.begin());
    std::copy(code.begin(), code.end(), answer.begin() + kNonceBytes);
    ZmqMessage address(std::as_bytes(std::span(line)));
    ZmqMessage head(encode_frame({.kind = FrameKind::challenge}));
    ZmqMessage body(answer);
    if (in_.send(address, true) && in_.send(head, true)) in_.send(body, false);
    return;
  }
  const auto caller = callers_.find(line);
  if (caller == callers_.end() || caller->second.rank != rank) return strangers_.note();
  Handshake shake = handshake(rank, job_.rank);
  shake.client_nonce = caller->second.client_nonce;
  shake.server_nonce = caller->second.server_nonce;
  callers_.erase(caller);
  Peer& peer = peers_[rank];
  if (!same_code(shake.client_code(), frame.payload) || !peer.line.empty())
    return strangers_.note();
  // Events about an older connection with the same descriptor come before this.
  watch_connections();
  peer.line = line;
  peer.connection = connection;
  rank_of_line_[line] = rank;
}

}  // namespace convoy
