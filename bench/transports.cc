// Every transport beside raw TCP over loopback: the round trip of 8 bytes, the time of 64 MiB, what
// a rank that waits costs, and how long the death of a peer stays unseen. Ranks are processes,
// pinned to one core each.
//
//   bench_transports [repeats]
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "world/shm/shm_transport.h"

namespace convoy {
namespace {

constexpr std::size_t kLargeBytes = std::size_t{64} << 20;
constexpr std::size_t kVictimBytes = std::size_t{1} << 30;  // resident: its teardown takes time
constexpr int kRoundTrips = 5000;
constexpr double kWait_s = 60;
constexpr double kIdle_s = 0.5;

// Two ranks that can exchange bytes.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual void send(std::span<const std::byte> bytes) = 0;
  virtual void receive(std::span<std::byte> bytes) = 0;
  virtual void close() {}
};

// Made before the ranks are; enter() is called in each.
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
  explicit TransportWire(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)), peer_(1 - transport_->rank()) {}
  void send(std::span<const std::byte> bytes) override {
    transport_->wait(transport_->send(peer_, 1, bytes), kWait_s);
  }
  void receive(std::span<std::byte> bytes) override {
    transport_->wait(transport_->recv(peer_, 1, bytes), kWait_s);
  }
  void close() override { transport_->close(kWait_s); }

 private:
  std::unique_ptr<Transport> transport_;
  int peer_;
};

class Shm final : public Contender {
 public:
  std::unique_ptr<Wire> enter(int rank) override {
    return std::make_unique<TransportWire>(join_shm(dup(segment_.fd()), {.rank = rank, .size = 2}));
  }

 private:
  shm::Segment segment_ = shm::Segment::create({.ranks = 2});
};

// One place for a number that a rank hands to this process.
struct Board {
  double value;
  double second;
};

class SharedBoard {
 public:
  SharedBoard()
      : board_(static_cast<Board*>(mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedBoard() { munmap(board_, sizeof(Board)); }
  Board* operator->() { return board_; }

 private:
  Board* board_;
};

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);  // where the machine has no such core, as it is
}

// Runs `body` in a process per rank and waits for both. One that killed itself has not failed.
void run_pair(Contender& contender, const std::function<void(int rank, Wire&)>& body) {
  pid_t pids[2];
  for (int rank = 0; rank < 2; ++rank) {
    pids[rank] = fork();
    if (pids[rank] != 0) continue;
    pin(rank);
    try {
      const std::unique_ptr<Wire> wire = contender.enter(rank);
      body(rank, *wire);
      wire->close();
    } catch (const std::exception& error) {
      fmt::print(stderr, "rank {}: {}\n", rank, error.what());
      _exit(1);
    }
    _exit(0);
  }
  for (const pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK(status == 0 || WIFSIGNALED(status), "a rank has failed");
  }
}

double cpu_s() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double round_trip_s(Contender& contender) {
  SharedBoard board;
  run_pair(contender, [&](int rank, Wire& wire) {
    std::uint64_t number = 0;
    const auto bytes = std::as_writable_bytes(std::span(&number, 1));
    double begin_s = 0;
    for (int trip = -kRoundTrips / 10; trip < kRoundTrips; ++trip) {
      if (trip == 0) begin_s = now_s();
      if (rank == 0) {
        wire.send(bytes);
        wire.receive(bytes);
      } else {
        wire.receive(bytes);
        ++number;
        wire.send(bytes);
      }
    }
    CHECK(number == kRoundTrips + kRoundTrips / 10, "{} came back", number);
    if (rank == 0) board->value = (now_s() - begin_s) / kRoundTrips;
  });
  return board->value;
}

double large_s(Contender& contender) {
  SharedBoard board;
  run_pair(contender, [&](int rank, Wire& wire) {
    std::vector<std::byte> data(kLargeBytes, std::byte(rank));
    std::byte answer{};
    for (int message = 0; message < 3; ++message) {  // the first ones touch the pages
      const double begin_s = now_s();
      if (rank == 0) {
        data.front() = data.back() = std::byte(100 + message);
        wire.send(data);
        wire.receive({&answer, 1});
        board->value = now_s() - begin_s;
      } else {
        wire.receive(data);
        CHECK(data.front() == std::byte(100 + message) && data.back() == data.front() &&
                  data[kLargeBytes / 2] == std::byte{0},
              "other bytes came than were sent");
        wire.send({&answer, 1});
      }
    }
  });
  return board->value;
}

double idle_share(Contender& contender) {
  SharedBoard board;
  run_pair(contender, [&](int rank, Wire& wire) {
    std::byte byte{};
    if (rank == 0) {
      usleep(static_cast<useconds_t>(kIdle_s * 1e6));
      wire.send({&byte, 1});
    } else {
      const double begin_s = now_s(), cpu_begin_s = cpu_s();
      wire.receive({&byte, 1});
      board->value = (cpu_s() - cpu_begin_s) / (now_s() - begin_s);
    }
  });
  return board->value;
}

double death_s(Contender& contender) {
  SharedBoard board;
  run_pair(contender, [&](int rank, Wire& wire) {
    std::byte byte{};
    if (rank == 1) {
      std::vector<std::byte> ballast(kVictimBytes, std::byte{1});
      usleep(20'000);  // the other one sleeps by now
      board->value = now_s();
      kill(getpid(), SIGKILL);
    }
    try {
      wire.receive({&byte, 1});
    } catch (const TransportError&) {
      board->second = now_s();
    }
  });
  return board->second - board->value;
}

double median(int repeats, const std::function<double()>& measure) {
  std::vector<double> values;
  for (int repeat = 0; repeat < repeats; ++repeat) values.push_back(measure());
  std::nth_element(values.begin(), values.begin() + repeats / 2, values.end());
  return values[repeats / 2];
}

struct Row {
  const char* name;
  std::unique_ptr<Contender> (*make)();
};

// A new transport is a new row.
const Row kRows[] = {
    {"TCP loopback", [] { return std::unique_ptr<Contender>(new Tcp); }},
    {"shm", [] { return std::unique_ptr<Contender>(new Shm); }},
};

void run(int repeats) {
  fmt::print("medians of {}\n{:<14}{:>16}{:>16}{:>14}{:>16}\n", repeats, "", "8 B trip, us",
             "64 MiB, GB/s", "idle, %", "death seen, ms");
  for (const Row& row : kRows) {
    const auto of = [&](double (*measure)(Contender&)) {
      return median(repeats, [&] { return measure(*row.make()); });
    };
    fmt::print("{:<14}{:>16.2f}{:>16.2f}{:>14.3f}{:>16.2f}\n", row.name, of(round_trip_s) * 1e6,
               kLargeBytes / of(large_s) * 1e-9, of(idle_share) * 100, of(death_s) * 1e3);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace convoy

int main(int count, char** arguments) {
  convoy::run(count > 1 ? std::max(1, std::atoi(arguments[1])) : 5);
}
