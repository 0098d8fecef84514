// Two ranks that can exchange bytes, by every transport and by raw TCP.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/check.h"
#include "world/inproc/inproc.h"
#include "world/mpi/mpi_world.h"
#include "world/shm/shm_transport.h"
#include "world/zmq/rendezvous.h"

namespace convoy {

inline constexpr double kWait_s = 60;

// One of two ranks that can exchange bytes.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual void send(std::span<const std::byte> bytes) = 0;
  virtual void receive(std::span<std::byte> bytes) = 0;
  virtual void close() {}
};

// What a rank does; the one that has measured something returns it.
using Body = std::function<std::optional<double>(int rank, Wire&)>;

// Two ranks, made anew by every run().
class Pair {
 public:
  virtual ~Pair() = default;
  virtual double run(const Body& body) = 0;
  virtual bool survives_death() const { return false; }
};

// Made before the ranks are forked; enter() is called in each.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual std::unique_ptr<Wire> enter(int rank) = 0;
};

class TcpWire final : public Wire {
 public:
  explicit TcpWire(int socket) : socket_(socket) {
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~TcpWire() override { ::close(socket_); }
  void send(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t done = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (done <= 0) throw TransportError("the peer is gone");
      bytes = bytes.subspan(done);
    }
  }
  void receive(std::span<std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t done = recv(socket_, bytes.data(), bytes.size(), 0);
      if (done <= 0) throw TransportError("the peer is gone");
      bytes = bytes.subspan(done);
    }
  }

 private:
  int socket_;
};

class Tcp final : public Contender {
 public:
  Tcp() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address_;
    CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address_), bytes) == 0 &&
              listen(listener_, 1) == 0 &&
              getsockname(listener_, reinterpret_cast<sockaddr*>(&address_), &bytes) == 0,
          "no TCP over loopback: {}", std::strerror(errno));
  }
  ~Tcp() override { close(listener_); }
  std::unique_ptr<Wire> enter(int rank) override {
    if (rank == 0) return std::make_unique<TcpWire>(accept(listener_, nullptr, nullptr));
    const int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(other, reinterpret_cast<sockaddr*>(&address_), sizeof address_) == 0,
          "connect: {}", std::strerror(errno));
    return std::make_unique<TcpWire>(other);
  }

 private:
  int listener_;
  sockaddr_in address_{};
};

class TransportWire final : public Wire {
 public:
  explicit TransportWire(Transport& transport)
      : transport_(transport), peer_(1 - transport.rank()) {}
  void send(std::span<const std::byte> bytes) override {
    transport_.wait(transport_.send(peer_, 1, bytes), kWait_s);
  }
  void receive(std::span<std::byte> bytes) override {
    transport_.wait(transport_.recv(peer_, 1, bytes), kWait_s);
  }
  void close() override { transport_.close(kWait_s); }

 private:
  Transport& transport_;
  int peer_;
};

class Shm final : public Contender {
 public:
  std::unique_ptr<Wire> enter(int rank) override {
    transport_ = join_shm(dup(segment_.fd()), {.rank = rank, .size = 2});
    return std::make_unique<TransportWire>(*transport_);
  }

 private:
  shm::Segment segment_ = shm::Segment::create({.ranks = 2});
  std::unique_ptr<Transport> transport_;
};

// Two hosts that are this machine. Rank 0 does the launcher's part and tells rank 1 of the job.
class Zmq final : public Contender {
 public:
  explicit Zmq(bool encrypt) : encrypt_(encrypt) { CHECK(pipe(pipe_) == 0, "no pipe"); }
  ~Zmq() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  std::unique_ptr<Wire> enter(int rank) override {
    transport_ = join_zmq(rank == 0 ? make_job() : hear_of_job(), kWait_s);
    return std::make_unique<TransportWire>(*transport_);
  }

 private:
  Job make_job() {
    Job job;
    job.id = "0123456789abcdef";
    job.size = 2;
    job.hosts = {"a", "b"};
    job.host_of = {0, 1};
    job.transport = "zmq";
    job.keys = make_job_keys();
    job.encrypt = encrypt_;
    Rendezvous::Options options;
    options.job_id = job.id;
    options.size = job.size;
    options.keys = job.keys;
    rendezvous_ = std::make_unique<Rendezvous>(std::move(options));
    job.rendezvous = rendezvous_->endpoint();
    job.rank = 1;
    const std::string text = job.to_json() + "\n";
    CHECK(write(pipe_[1], text.data(), text.size()) == std::ssize(text), "a pipe broke");
    job.rank = 0;
    return job;
  }
  Job hear_of_job() {
    std::string text;
    for (char one = 0; read(pipe_[0], &one, 1) == 1 && one != '\n';) text += one;
    return Job::from_json(text);
  }

  bool encrypt_;
  int pipe_[2];
  std::unique_ptr<Rendezvous> rendezvous_;
  std::unique_ptr<Transport> transport_;
};

// One place for a number that a rank hands to this process.
class SharedNumber {
 public:
  SharedNumber()
      : number_(static_cast<double*>(mmap(nullptr, sizeof(double), PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedNumber() { munmap(number_, sizeof(double)); }
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;
  double& operator*() { return *number_; }

 private:
  double* number_;
};

inline void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);  // where the machine has no such core, as it is
}

// A process per rank.
class Forked final : public Pair {
 public:
  explicit Forked(std::function<std::unique_ptr<Contender>()> make) : make_(std::move(make)) {}
  bool survives_death() const override { return true; }

  double run(const Body& body) override {
    const std::unique_ptr<Contender> contender = make_();
    SharedNumber result;
    pid_t pids[2];
    for (int rank = 0; rank < 2; ++rank) {
      pids[rank] = fork();
      if (pids[rank] == 0) _exit(child(*contender, rank, body, *result));
    }
    for (const pid_t pid : pids) {
      int status = 0;
      waitpid(pid, &status, 0);  // one that killed itself has not failed
      CHECK(status == 0 || WIFSIGNALED(status), "a rank has failed");
    }
    return *result;
  }

 private:
  static int child(Contender& contender, int rank, const Body& body, double& result) {
    pin(rank);
    try {
      const std::unique_ptr<Wire> wire = contender.enter(rank);
      if (const std::optional<double> measured = body(rank, *wire)) result = *measured;
      wire->close();
      return 0;
    } catch (const std::exception& error) {
      fmt::print(stderr, "rank {}: {}\n", rank, error.what());
      return 1;
    }
  }

  std::function<std::unique_ptr<Contender>()> make_;
};

class Inproc final : public Pair {
 public:
  double run(const Body& body) override {
    double result = 0;
    run_inproc(2, {}, [&](World world) {
      TransportWire wire(world.transport);
      if (const std::optional<double> measured = body(world.transport.rank(), wire))
        result = *measured;
      wire.close();
    });
    return result;
  }
};

// The two ranks that mpirun has started, of which this process is one. Both learn the result.
class Mpi final : public Pair {
 public:
  double run(const Body& body) override {
    double result = 0;
    run_mpi(2, [&](World world) {
      const int rank = rank_ = world.transport.rank();
      TransportWire wire(world.transport);
      std::optional<double> measured = body(rank, wire);
      double there = 0, own = measured.value_or(0);
      const auto send = [&] { wire.send(std::as_bytes(std::span(&own, 1))); };
      const auto receive = [&] { wire.receive(std::as_writable_bytes(std::span(&there, 1))); };
      if (rank == 0) send();
      receive();
      if (rank == 1) send();
      result = measured ? own : there;
      wire.close();
    });
    return result;
  }
  int rank() const { return rank_; }  // the own one

 private:
  int rank_ = 0;
};

}  // namespace convoy
