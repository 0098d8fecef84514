// Every transport beside raw TCP over loopback: the round trip of 8 bytes, the time of 64 MiB, what
// a rank that waits costs, and how long the death of a peer stays unseen. Ranks are processes,
// pinned to one core each; those of inproc are threads. For MPI the program calls itself by mpirun;
// there a death ends the job.
//
//   bench_transports [repeats]
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/clock.h"
#include "pairs.h"

namespace convoy {
namespace {

constexpr std::size_t kLargeBytes = std::size_t{64} << 20;
constexpr std::size_t kVictimBytes = std::size_t{1} << 30;  // resident: its teardown takes time
constexpr int kRoundTrips = 5000;
constexpr double kIdle_s = 0.5;

double cpu_s() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double round_trip_s(Pair& pair) {
  return pair.run([&](int rank, Wire& wire) -> std::optional<double> {
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
    if (rank != 0) return std::nullopt;
    return (now_s() - begin_s) / kRoundTrips;
  });
}

double large_s(Pair& pair) {
  return pair.run([&](int rank, Wire& wire) -> std::optional<double> {
    std::vector<std::byte> data(kLargeBytes, std::byte(rank));
    std::byte answer{};
    double took_s = 0;
    for (int message = 0; message < 3; ++message) {  // the first ones touch the pages
      const double begin_s = now_s();
      if (rank == 0) {
        data.front() = data.back() = std::byte(100 + message);
        wire.send(data);
        wire.receive({&answer, 1});
        took_s = now_s() - begin_s;
      } else {
        wire.receive(data);
        CHECK(data.front() == std::byte(100 + message) && data.back() == data.front() &&
                  data[kLargeBytes / 2] == std::byte{0},
              "other bytes came than were sent");
        wire.send({&answer, 1});
      }
    }
    if (rank != 0) return std::nullopt;
    return took_s;
  });
}

double idle_share(Pair& pair) {
  return pair.run([&](int rank, Wire& wire) -> std::optional<double> {
    std::byte byte{};
    if (rank == 0) {
      usleep(static_cast<useconds_t>(kIdle_s * 1e6));
      wire.send({&byte, 1});
      return std::nullopt;
    }
    const double begin_s = now_s(), cpu_begin_s = cpu_s();
    wire.receive({&byte, 1});
    return (cpu_s() - cpu_begin_s) / (now_s() - begin_s);
  });
}

double death_s(Pair& pair) {
  SharedNumber died_s;
  const double seen_s = pair.run([&](int rank, Wire& wire) -> std::optional<double> {
    std::byte byte{};
    if (rank == 1) {
      std::vector<std::byte> ballast(kVictimBytes, std::byte{1});
      usleep(20'000);  // the other one sleeps by now
      *died_s = now_s();
      kill(getpid(), SIGKILL);
    }
    try {
      wire.receive({&byte, 1});
    } catch (const TransportError&) {
      return now_s();
    }
    return std::nullopt;
  });
  return seen_s - *died_s;
}

double median(int repeats, const std::function<double()>& measure) {
  std::vector<double> values;
  for (int repeat = 0; repeat < repeats; ++repeat) values.push_back(measure());
  std::nth_element(values.begin(), values.begin() + repeats / 2, values.end());
  return values[repeats / 2];
}

std::string row(const char* name, Pair& pair, int repeats) {
  const auto of = [&](double (*measure)(Pair&)) {
    return median(repeats, [&] { return measure(pair); });
  };
  return fmt::format("{:<18}{:>14.2f}{:>16.2f}{:>12.3f}{:>18}\n", name, of(round_trip_s) * 1e6,
                     kLargeBytes / of(large_s) * 1e-9, of(idle_share) * 100,
                     pair.survives_death() ? fmt::format("{:.2f}", of(death_s) * 1e3) : "-");
}

void print(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

// What mpirun starts: prints one row.
void run_mpi_row(int repeats) {
  Mpi pair;
  const std::string text = row("mpi", pair, repeats);
  if (pair.rank() == 0) print(text);
}

void run_by_mpirun(int repeats) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  const std::string command =
      fmt::format("mpirun --oversubscribe --bind-to core -n 2 '{}' {}", self, repeats);
  if (std::system(command.c_str()) != 0) print("mpi: mpirun has failed\n");
}

template <typename Kind, typename... Arguments>
void run_forked(const char* name, int repeats, Arguments... arguments) {
  Forked pair([=] { return std::make_unique<Kind>(arguments...); });
  print(row(name, pair, repeats));
}

// A new transport is a new line.
void run(int repeats) {
  print(fmt::format("medians of {}\n{:<18}{:>14}{:>16}{:>12}{:>18}\n", repeats, "", "8 B trip, us",
                    "64 MiB, GB/s", "idle, %", "death seen, ms"));
  run_forked<Tcp>("TCP loopback", repeats);
  run_forked<Shm>("shm", repeats);
  run_forked<Zmq>("zmq, plain", repeats, false);
  run_forked<Zmq>("zmq, encrypted", repeats, true);
  Inproc inproc;
  print(row("inproc", inproc, repeats));
  run_by_mpirun(repeats);
}

}  // namespace
}  // namespace convoy

int main(int count, char** arguments) {
  const int repeats = count > 1 ? std::max(1, std::atoi(arguments[1])) : 5;
  if (convoy::started_by_mpi())
    convoy::run_mpi_row(repeats);
  else
    convoy::run(repeats);
}
