// Who does not have the job's key has no effect on the job, and is logged once.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <atomic>
#include <sstream>

#include "world/agreement.h"
#include "world/zmq/control_link.h"
#include "world/zmq/gatekeeper.h"
#include "world/zmq/handshake.h"
#include "world/zmq/message.h"
#include "world/zmq/socket.h"
#include "world/zmq/zmq_test_support.h"

namespace convoy {
namespace {

constexpr double kWait_s = 60;

// What is logged while it lives.
class Log {
 public:
  Log() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  ~Log() { spdlog::set_default_logger(before_); }
  int count(const std::string& words) const {
    int found = 0;
    const std::string text = text_.str();
    for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
      ++found;
    return found;
  }

 private:
  std::shared_ptr<spdlog::logger> before_;
  std::ostringstream text_;
};

int dial(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(colon + 1))));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

// Sends bytes that are not ZeroMQ's, and waits until the other side hangs up.
void send_garbage(const std::string& endpoint) {
  const int fd = dial(endpoint);
  std::string garbage(4096, '\0');
  for (std::size_t i = 0; i < garbage.size(); ++i) garbage[i] = static_cast<char>(i * 37 + 11);
  EXPECT_GT(send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL), 0);
  shutdown(fd, SHUT_WR);
  char byte = 0;
  while (recv(fd, &byte, 1, 0) > 0) {
  }
  close(fd);
}

// Connects by ZeroMQ and sends every message given; waits until it was refused, if it will be.
void knock(const std::string& endpoint, const JobKeys* server, const JobKeys* own,
           const std::vector<std::pair<FrameHead, std::vector<std::byte>>>& messages) {
  ZmqContext context;
  ZmqSocket socket(context, ZmqSocket::Kind::dealer);
  if (server) socket.use_curve(*own, server->public_key);
  socket.never_reconnect();
  ZmqMonitor monitor(context, socket);
  socket.connect(endpoint);
  for (const auto& [head, body] : messages) {
    ZmqMessage first(head), second(body);
    if (socket.send(first, !body.empty()) && !body.empty()) socket.send(second, false);
  }
  Doorbell nobody;
  ZmqSocket* const watched[] = {&monitor.socket()};
  if (server || messages.empty()) {
    while (!monitor.next()) zmq_sleep(watched, nobody, kWait_s);
  } else {
    socket.linger(1);
  }
}

std::vector<std::byte> text_bytes(std::size_t count) { return std::vector<std::byte>(count); }

// Two ranks whose messages must come through, with strangers at both doors in between.
void run_with_strangers(bool encrypt,
                        const std::function<void(const TestJob&, const std::string&)>& visit) {
  TestJob job({.size = 2, .encrypt = encrypt});
  std::atomic<int> here = 0;
  const auto body = [&](World world, const RankDie&) {
    Transport& transport = world.transport;
    const int peer = 1 - transport.rank();
    const std::vector<std::byte> sent(100'000);
    std::vector<std::byte> received(sent.size());
    if (++here == 2) {
      visit(job, job.rendezvous().endpoint());
      for (const RankHello& member : job.rendezvous().members()) visit(job, member.endpoint);
      transport.wait(transport.send(peer, 1, {}), kWait_s);
    } else {
      // Progress goes on while strangers knock.
      transport.wait(transport.recv(peer, 1, {}), kWait_s);
    }
    const Ticket send = transport.send(peer, 2, sent), recv = transport.recv(peer, 2, received);
    transport.wait(send, kWait_s);
    EXPECT_EQ(transport.wait(recv, kWait_s).bytes, sent.size());
    // Neither leaves before the other is done.
    transport.send(peer, 3, {});
    transport.wait(transport.recv(peer, 3, {}), kWait_s);
    transport.close(kWait_s);
  };
  std::thread other([&] { run_zmq_rank(job.job(1), body); });
  run_zmq_rank(job.job(0), body);
  other.join();
}

TEST(ZmqStrangers, GarbageHasNoEffect) {
  for (const bool encrypt : {true, false}) {
    const Log log;
    run_with_strangers(encrypt, [](const TestJob&, const std::string& endpoint) {
      for (int again = 0; again < 3; ++again) send_garbage(endpoint);
    });
    EXPECT_EQ(log.count("rendezvous: refused"), 1);
    EXPECT_LE(log.count("rank 0: refused"), 1);
    EXPECT_EQ(log.count("rank 0: refused") + log.count("rank 1: refused"), 2);
  }
}

TEST(ZmqStrangers, WithoutAKeyNobodyGetsIn) {
  const Log log;
  run_with_strangers(true, [](const TestJob&, const std::string& endpoint) {
    for (int again = 0; again < 3; ++again) knock(endpoint, nullptr, nullptr, {});
  });
  EXPECT_EQ(log.count("rendezvous: refused"), 1);
  EXPECT_EQ(log.count("refused somebody"), 3);
}

TEST(ZmqStrangers, WithAWrongKeyNobodyGetsIn) {
  const Log log;
  run_with_strangers(true, [](const TestJob& job, const std::string& endpoint) {
    const JobKeys own = make_job_keys();
    for (int again = 0; again < 3; ++again) knock(endpoint, &job.keys(), &own, {});
  });
  EXPECT_EQ(log.count("rendezvous: refused"), 1);
  EXPECT_EQ(log.count("refused somebody"), 3);
}

// In plain, frames of a stranger reach the decoder; without proof they count for nothing.
TEST(ZmqStrangers, InPlainFramesWithoutProofHaveNoEffect) {
  const Log log;
  run_with_strangers(false, [](const TestJob& job, const std::string& endpoint) {
    if (endpoint == const_cast<TestJob&>(job).rendezvous().endpoint()) return;
    const auto bytes = text_bytes(3);
    for (int again = 0; again < 3; ++again)
      knock(endpoint, nullptr, nullptr,
            {{encode_frame({.kind = FrameKind::hello, .tag = 1, .payload = {}}),
              text_bytes(kNonceBytes)},
             {encode_frame({.kind = FrameKind::proof, .tag = 1}), text_bytes(kCodeBytes)},
             {encode_frame({.kind = FrameKind::eager, .tag = 2, .id = 1, .total = 3}), bytes},
             {encode_frame({.kind = FrameKind::bye}), {}}});
  });
  EXPECT_LE(log.count("rank 0: refused"), 1);
  EXPECT_LE(log.count("rank 1: refused"), 1);
}

// Rank 1, played by hand up to the point where its connections stand.
class HandPlayedRank {
 public:
  HandPlayedRank(const Job& job)
      : job_(job),
        gatekeeper_(context_, job.keys),
        in_(context_, ZmqSocket::Kind::router),
        control_(context_, job_, [] {}) {
    const std::string endpoint = in_.bind("tcp://127.0.0.1:*");
    peer_endpoint_ = control_.join({.job_id = job.id,
                                    .rank = 1,
                                    .host = "loopback",
                                    .build = program_build(),
                                    .endpoint = endpoint},
                                   kWait_s)[0];
  }

  ZmqSocket dial() {
    ZmqSocket socket(context_, ZmqSocket::Kind::dealer);
    socket.connect(peer_endpoint_);
    return socket;
  }
  static void send(ZmqSocket& socket, const Frame& frame) {
    ZmqMessage head(encode_frame(frame)), body(frame.payload);
    EXPECT_TRUE(socket.send(head, !frame.payload.empty()));
    if (!frame.payload.empty()) {
      EXPECT_TRUE(socket.send(body, false));
    }
  }
  std::vector<ZmqMessage> await(ZmqSocket& socket) {
    std::vector<ZmqMessage> parts;
    ZmqSocket* const sockets[] = {&socket};
    while (!socket.recv_all(parts)) zmq_sleep(sockets, nobody_, kWait_s);
    return parts;
  }
  // Answers the hello of rank 0, which then has all its connections.
  void answer() {
    const std::vector<ZmqMessage> hello = await(in_);
    Handshake shake{.secret = job_.keys.secret_key, .job_id = job_.id, .client = 0, .server = 1};
    std::copy_n(hello[2].bytes().begin(), kNonceBytes, shake.client_nonce.begin());
    std::vector<std::byte> challenge(shake.server_nonce.begin(), shake.server_nonce.end());
    const Code code = shake.server_code();
    challenge.insert(challenge.end(), code.begin(), code.end());
    ZmqMessage line(hello[0].bytes()), head(encode_frame({.kind = FrameKind::challenge})),
        body(challenge);
    EXPECT_TRUE(in_.send(line, true) && in_.send(head, true) && in_.send(body, false));
    await(in_);  // the proof
    control_.await_connected(kWait_s);
  }

 private:
  const Job job_;
  ZmqContext context_;
  Gatekeeper gatekeeper_;
  ZmqSocket in_;
  ControlLink control_;
  std::string peer_endpoint_;
  Doorbell nobody_;
};

// Hello and proof of rank 1, sent again on another connection before the true ones are complete.
TEST(ZmqStrangers, AReplayedHelloIsRefused) {
  const Log log;
  TestJob job({.size = 2, .encrypt = false});
  std::thread rank_0([&] {
    run_zmq_rank(job.job(0), [](World world, const RankDie&) {
      std::vector<std::byte> first(3), second(3);
      const Ticket one = world.transport.recv(1, 5, first);
      const Ticket other = world.transport.recv(1, 5, second);
      world.transport.wait(one, kWait_s);
      EXPECT_EQ(first, std::vector(3, std::byte{1}));
      EXPECT_THROW(world.transport.wait(other, kWait_s), PeerLost);
    });
  });
  {
    HandPlayedRank rank_1(job.job(1));
    ZmqSocket own = rank_1.dial(), replay = rank_1.dial();
    const Nonce nonce = fresh_nonce();
    const Frame hello{.kind = FrameKind::hello, .tag = 1, .payload = nonce};
    HandPlayedRank::send(own, hello);
    const std::vector<ZmqMessage> challenge = rank_1.await(own);
    Handshake shake{.secret = job.keys().secret_key,
                    .job_id = "0123456789abcdef",
                    .client = 1,
                    .server = 0,
                    .client_nonce = nonce};
    std::copy_n(challenge[1].bytes().begin(), kNonceBytes, shake.server_nonce.begin());
    const Code code = shake.client_code();
    const Frame proof{.kind = FrameKind::proof, .tag = 1, .payload = code};
    const std::vector<std::byte> evil(3, std::byte{6}), good(3, std::byte{1});
    HandPlayedRank::send(replay, hello);
    rank_1.await(replay);  // another challenge, which the recorded proof does not answer
    HandPlayedRank::send(replay, proof);
    HandPlayedRank::send(replay, {.kind = FrameKind::eager, .tag = 5, .total = 3, .payload = evil});
    HandPlayedRank::send(own, proof);
    HandPlayedRank::send(own, {.kind = FrameKind::eager, .tag = 5, .total = 3, .payload = good});
    rank_1.answer();
    own.linger(1);
  }
  rank_0.join();
  EXPECT_EQ(log.count("rank 0: refused somebody"), 1);
}

}  // namespace
}  // namespace convoy
