// convoy bench allreduce: time and bandwidth of one all-reduce, as nccl-tests defines them.
//   algorithm bandwidth = bytes of the buffer / time
//   bus bandwidth = algorithm bandwidth * 2(N-1)/N: what a rank's link carries in the best
//   algorithm, which can be compared with the speed of the link, whatever N.
#include "cli/bench_allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/ranks.h"
#include "sync/communicator.h"
#include "sync/grouped_digits.h"
#include "world/host_memory.h"
#include "world/sim/sim.h"

namespace convoy {
namespace {

struct Options {
  RankOptions ranks;
  std::string algorithm = "auto";
  std::string element = "f32";
  std::uint64_t bytes = 100 << 20;
  std::uint64_t segment_bytes = 256 << 10;
  int iterations = 10;
  std::string world = "real";
  double alpha_s = 50e-6;
  double beta_gb_s = 0.125;
  bool private_memory = false;
  bool json = false;
};

constexpr int kMostSimulated = 1 << 16;

struct Measurement {
  std::string algorithm = {};
  std::string transport = {};
  int ranks = 0;
  std::vector<double> seconds = {};  // sorted; of the slowest rank in each iteration
  double cpu_s = 0;                  // of rank 0's process, an iteration
  double wall_s = 0;                 // of a simulation
  std::uint64_t messages = 0;        // of a simulation

  double best() const { return seconds.front(); }
  double median() const { return seconds[seconds.size() / 2]; }
};

// Small whole numbers, whose sums are exact in any order, in bf16 too.
float value_at(std::size_t place, int rank) {
  return float((place + 3 * std::size_t(rank)) % 5) - 2;
}

// Reads and writes element `place`, f32 or bf16.
float get(std::span<const std::byte> buffer, Element element, std::size_t place) {
  if (element == Element::bf16) {
    std::uint16_t half = 0;
    std::memcpy(&half, buffer.data() + 2 * place, 2);
    return std::bit_cast<float>(std::uint32_t(half) << 16);
  }
  float value = 0;
  std::memcpy(&value, buffer.data() + 4 * place, 4);
  return value;
}
void put(std::span<std::byte> buffer, Element element, std::size_t place, float value) {
  const auto half = std::uint16_t(std::bit_cast<std::uint32_t>(value) >> 16);
  if (element == Element::bf16)
    std::memcpy(buffer.data() + 2 * place, &half, 2);
  else
    std::memcpy(buffer.data() + 4 * place, &value, 4);
}

void check_result(Communicator& communicator, std::span<std::byte> buffer, Element element) {
  const std::size_t count = buffer.size() / element_bytes(element);
  for (std::size_t place = 0; place < count; ++place)
    put(buffer, element, place, value_at(place, communicator.index()));
  communicator.all_reduce(buffer, element, Reduction::sum);
  // The values repeat every five elements.
  float right[5] = {};
  for (std::size_t place = 0; place < 5; ++place)
    for (int rank = 0; rank < communicator.size(); ++rank) right[place] += value_at(place, rank);
  for (std::size_t place = 0; place < count; ++place)
    if (get(buffer, element, place) != right[place % 5])
      throw DataError("rank {}: element {} of the sum is {} and should be {}", communicator.index(),
                      place, get(buffer, element, place), right[place % 5]);
}

// Of all cores, for this process.
double process_cpu_s() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return double(used.tv_sec) + 1e-9 * double(used.tv_nsec);
}

// The time of the slowest rank.
double slowest(Communicator& communicator, double seconds) {
  std::int64_t picoseconds = std::int64_t(seconds * 1e12);
  communicator.all_reduce(std::span(&picoseconds, 1), Reduction::max);
  return double(picoseconds) * 1e-12;
}

void measure(const Options& options, World world, Measurement& measured) {
  const Element element = parse_element(options.element);
  const std::size_t bytes = options.bytes / element_bytes(element) * element_bytes(element);
  const bool real = world.transport.carries_bytes();
  Communicator communicator(
      world.runtime, world.transport,
      {.algorithm = options.algorithm, .segment_bytes = options.segment_bytes});
  HostMemory* const host = real ? world.transport.host_memory() : nullptr;
  const bool shared = host && host->ranks().size() > 1 && !options.private_memory;
  Scratch own(real);
  const std::span<std::byte> buffer = shared ? host->allocate(bytes) : own.room(bytes);
  if (real) check_result(communicator, buffer, element);
  if (real) std::memset(buffer.data(), 0, buffer.size());
  std::vector<double> seconds;
  double cpu_start_s = 0;
  for (int iteration = real ? -2 : 0; iteration < options.iterations; ++iteration) {
    if (real) communicator.barrier();
    if (iteration == 0) cpu_start_s = process_cpu_s();
    const double start_s = world.runtime.now_s();
    communicator.all_reduce(buffer, element, Reduction::sum);
    const double own_s = world.runtime.now_s() - start_s;
    const double all_s = real ? slowest(communicator, own_s) : own_s;
    if (iteration >= 0) seconds.push_back(all_s);
  }
  const std::string algorithm(communicator.choose(bytes).name);
  if (real) communicator.barrier();
  const bool first = communicator.index() == 0;
  const int size = communicator.size();
  world.transport.close(60);
  if (!first) return;
  std::sort(seconds.begin(), seconds.end());
  measured.algorithm = algorithm;
  measured.ranks = size;
  measured.cpu_s = (process_cpu_s() - cpu_start_s) / double(seconds.size());
  measured.seconds = std::move(seconds);
}

Measurement predict(const Options& options) {
  if (options.algorithm == "native")
    throw ConfigError("--algorithm native: a simulated network has none of its own; try ring");
  Measurement measured{.transport = "sim"};
  const Cluster cluster{
      .ranks = options.ranks.size == 0 ? 2 : options.ranks.size,
      .network = {.latency_s = options.alpha_s, .bytes_per_s = options.beta_gb_s * 1e9}};
  const double start_s = now_s();
  const SimResult result = run_sim(cluster, {.carries_bytes = false},
                                   [&](World world) { measure(options, world, measured); });
  measured.wall_s = now_s() - start_s;
  measured.messages = result.messages;
  return measured;
}

void report(const Options& options, const Measurement& measured) {
  const double n = measured.ranks;
  const double algbw = double(options.bytes) / measured.median() / 1e9;
  const double busbw = algbw * 2 * (n - 1) / n;
  const bool simulated = measured.transport == "sim";
  fmt::print("all-reduce of {} bytes of {} among {} rank{} by {} over {}{}\n",
             grouped_digits(options.bytes), options.element, measured.ranks,
             measured.ranks == 1 ? "" : "s", measured.algorithm, measured.transport,
             simulated ? "" : "; the sum is right");
  fmt::print("time {:.3f} ms (best {:.3f}) over {} iteration{}\n", measured.median() * 1e3,
             measured.best() * 1e3, measured.seconds.size(),
             measured.seconds.size() == 1 ? "" : "s");
  fmt::print("algorithm bandwidth {:.3f} GB/s, bus bandwidth {:.3f} GB/s\n", algbw, busbw);
  if (simulated)
    fmt::print("simulated {} messages in {:.2f} s\n", grouped_digits(measured.messages),
               measured.wall_s);
  if (!options.json) return;
  nlohmann::json answer = {{"seconds", measured.median()},
                           {"seconds_best", measured.best()},
                           {"cpu_seconds", measured.cpu_s},
                           {"algbw_gb_s", algbw},
                           {"busbw_gb_s", busbw},
                           {"algorithm", measured.algorithm},
                           {"transport", measured.transport},
                           {"ranks", measured.ranks},
                           {"bytes", options.bytes},
                           {"element", options.element},
                           {"iterations", measured.seconds.size()}};
  if (simulated) {
    answer["messages"] = measured.messages;
    answer["wall_s"] = measured.wall_s;
  }
  print_answer(answer);
}

void run(const Options& options, bool link_given) {
  if (options.algorithm != "auto") find_algorithm(options.algorithm);
  if (options.bytes % element_bytes(parse_element(options.element)) != 0)
    throw ConfigError("--bytes {}: not a whole number of {} elements", options.bytes,
                      options.element);
  if (options.world == "sim") {
    if (options.ranks.size > kMostSimulated)
      throw ConfigError("-n {}: at most {} simulated ranks", options.ranks.size, kMostSimulated);
    if (!options.ranks.transport.empty())
      throw ConfigError("--transport {}: has no meaning with --world sim; leave it away",
                        options.ranks.transport);
    report(options, predict(options));
    return;
  }
  if (link_given)
    throw ConfigError("--alpha and --beta describe a simulated network: add --world sim");
  Measurement measured{.transport = transport_name(options.ranks)};
  run_ranks(options.ranks, [&](World world) { measure(options, world, measured); });
  if (!measured.seconds.empty()) report(options, measured);
}

}  // namespace

void add_bench_allreduce(CLI::App& bench) {
  auto options =
      std::make_shared<Options>();  // outlives this function: CLI11 writes to it when it parses
  CLI::App* command =
      bench.add_subcommand("allreduce", "Time an all-reduce between ranks, real or simulated");
  std::string names = "auto";
  for (const Algorithm& row : algorithms()) names += fmt::format(", {}", row.name);
  command->add_option("--algorithm", options->algorithm, names)->capture_default_str();
  command->add_option("--bytes", options->bytes, "Size of every rank's buffer")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 36))
      ->capture_default_str();
  command->add_option("--element", options->element, "f32 or bf16")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  command->add_option("--iterations", options->iterations, "How often to measure")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--segment", options->segment_bytes, "Bytes of a message at most")
      ->check(CLI::Range(std::uint64_t{64}, std::uint64_t{1} << 30))
      ->capture_default_str();
  command->add_flag("--private", options->private_memory,
                    "Buffers outside of shared memory, also where ranks share some");
  add_rank_options(*command, options->ranks);
  command->add_option("--world", options->world, "real, or sim: what a network would take")
      ->check(CLI::IsMember({"real", "sim"}))
      ->capture_default_str();
  CLI::Option* alpha =
      command->add_option("--alpha", options->alpha_s, "Latency of the simulated links, seconds")
          ->check(CLI::Range(0.0, 10.0))
          ->capture_default_str();
  CLI::Option* beta = command->add_option("--beta", options->beta_gb_s, "Their bandwidth, GB/s")
                          ->check(CLI::Range(1e-6, 1e6))
                          ->capture_default_str();
  command->add_flag("--json", options->json, "End with one JSON object on one line");
  command->footer(
      "Examples:\n"
      "  convoy bench allreduce -n 4 --transport shm --bytes 104857600\n"
      "  convoy launch --hosts hosts.txt -- convoy bench allreduce --algorithm ring\n"
      "  convoy bench allreduce -n 64 --world sim --alpha 5e-5 --beta 0.125 --algorithm torus");
  command->callback([options, alpha, beta] { run(*options, alpha->count() + beta->count() > 0); });
}

}  // namespace convoy
