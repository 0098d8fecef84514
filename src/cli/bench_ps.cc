// convoy bench ps: push and pull between workers and parameter servers, and what servers cost.
//   A round is a push of all slices and the arrival of the values that each became; plain SGD is
//   applied on the way, w -= g: what ps-lite's default server does (w += g).
#include "cli/bench_ps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/float_arena.h"
#include "cli/bench_servers.h"
#include "cli/bench_update.h"
#include "cli/command.h"
#include "cli/ranks.h"
#include "kernels/parallel.h"
#include "sync/grouped_digits.h"
#include "sync/ps/client.h"
#include "sync/ps/policy.h"
#include "sync/ps/server.h"

namespace convoy {
namespace {

struct Options {
  BenchJob job{.bytes = 100 << 20, .slice_bytes = 4 << 20, .policy = "async"};
  bool workers_given = false;
  std::string transport;
  int iterations = 10;
  double idle_s = 0;
  bool update = false;
  int threads = 0;
  bool json = false;
};

constexpr int kWarmUp = 3;
constexpr Tag kCostTag = 0x30000000;

// What a server's process used, from the first message to the last.
struct Cost {
  double cpu_s = 0, wall_s = 0;
};

struct Measurement {
  std::vector<double> seconds;  // sorted; of a round
  double memcpy_s = 0;          // of as many bytes as a round pushes and pulls
  double idle_share = 0;        // of a core, the busiest server

  double best() const { return seconds.front(); }
  double median() const { return seconds[seconds.size() / 2]; }
};

double process_cpu_s() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return double(used.tv_sec) + 1e-9 * double(used.tv_nsec);
}

void serve(World world, const BenchJob& options) {
  ParameterServer server(world, options.workers);
  const double start_s = now_s(), cpu_s = process_cpu_s();
  server.run();
  const Cost cost{.cpu_s = process_cpu_s() - cpu_s, .wall_s = now_s() - start_s};
  Transport& transport = world.transport;
  transport.wait(transport.send(0, kCostTag, bytes_of(cost)), kForever);
  transport.close(60);
}

// Small whole numbers, exact in bf16.
float value_at(std::size_t place) { return float(place % 5) + 1; }

class BenchWorker {
 public:
  BenchWorker(World world, const ServerJob& job)
      : job_(job),
        client_(world, job),
        code_(make_wire_code(job.wire)),
        values_(job.layout.arena),
        gradient_(job.layout.arena),
        messages_(job.layout.slices.size()) {
    if (!client_.shared().empty()) gradient_.place(client_.shared());
    for (std::size_t i = 0; i < gradient_.span().size(); ++i) gradient_.span()[i] = value_at(i);
    if (code_ && code_->feeds_back()) residual_.resize(job.layout.arena);
    if (job.wire == "bf16") client_.expect_halves();
  }

  double round() {
    const double start_s = now_s();
    for (std::uint32_t i = 0; i < job_.layout.slices.size(); ++i) push(i);
    for (std::uint32_t i = 0; i < job_.layout.slices.size(); ++i) client_.wait(i);
    return now_s() - start_s;
  }

  // Every slice is some whole number of gradients, since all workers push the same; others may be
  // ahead, by as many `rounds` as there are in all.
  void check(int rounds) {
    if (job_.wire != "f32" && job_.wire != "bf16") return;
    for (const ServerSlice& slice : job_.layout.slices) {
      const float times = -values_.span()[slice.begin] / value_at(slice.begin);
      if (times < 1 || times > float(rounds * job_.workers) || times != std::floor(times))
        throw DataError("slice at {}: moved by {} gradients in {} rounds", slice.begin, times,
                        rounds);
      for (std::size_t i = slice.begin; i < slice.end; ++i)
        if (values_.span()[i] != -times * value_at(i))
          throw DataError("value {} is {} and should be {}", i, values_.span()[i],
                          -times * value_at(i));
    }
  }

  void leave() { client_.leave(); }

 private:
  void push(std::uint32_t slice) {
    const ServerSlice& range = job_.layout.slices[slice];
    const std::span<const float> values = gradient_.span().subspan(range.begin, range.count());
    const std::span<float> into = values_.span().subspan(range.begin, range.count());
    const WorkerHead head{.samples = 1, .mean_over = 1};
    if (!code_) return client_.push(slice, head, std::as_bytes(values), into);
    std::vector<std::uint32_t>& message = messages_[slice];
    message.resize(code_->words(range.count()));
    client_.push(slice, head, std::as_bytes(std::span(message)), into,
                 [this, values, range, &message] {
                   code_->encode(values,
                                 residual_.empty()
                                     ? std::span<float>()
                                     : std::span(residual_).subspan(range.begin, range.count()),
                                 message);
                 });
  }

  const ServerJob& job_;
  ServerClient client_;
  std::unique_ptr<WireCode> code_;
  FloatArena values_, gradient_;
  std::vector<float> residual_;
  std::vector<std::vector<std::uint32_t>> messages_;
};

// Of so many bytes from one place to another, neither of which a cache holds.
double memcpy_s(std::size_t bytes) {
  FloatArena from(bytes / sizeof(float)), to(bytes / sizeof(float));
  std::memset(from.span().data(), 1, bytes);
  std::vector<double> seconds;
  for (int i = 0; i < 8; ++i) {
    const double start_s = now_s();
    std::memcpy(to.span().data(), from.span().data(), bytes);
    if (i > 0) seconds.push_back(now_s() - start_s);  // the first touches the pages
  }
  std::nth_element(seconds.begin(), seconds.begin() + 3, seconds.end());
  return seconds[3];
}

void measure(const Options& options, World world, Measurement& measured) {
  Transport& transport = world.transport;
  BenchJob described = options.job;
  described.workers = transport.size() - described.servers;
  if (described.workers < 1)
    throw ConfigError("--servers {}: of {} ranks, none is left to be a worker", described.servers,
                      transport.size());
  if (transport.rank() >= described.workers) return serve(world, described);
  const bool leads = transport.rank() == 0;
  const ServerJob job = bench_job(described);
  if (leads) measured.memcpy_s = memcpy_s(2 * described.bytes / sizeof(float) * sizeof(float));
  if (leads)
    for (int server = 0; server < described.servers; ++server)
      send_setup(transport, described.workers, server, &job, std::vector<float>(job.layout.arena),
                 {});
  std::vector<double> seconds;
  {
    BenchWorker worker(world, job);
    if (options.idle_s > 0) {
      world.runtime.sleep_s(options.idle_s);
    } else {
      for (int i = 0; i < kWarmUp; ++i) worker.round();
      worker.check(kWarmUp + options.iterations);
      for (int i = 0; i < options.iterations; ++i) seconds.push_back(worker.round());
    }
    worker.leave();
  }
  for (int server = 0; leads && server < described.servers; ++server) {
    Cost cost;
    transport.wait(transport.recv(described.workers + server, kCostTag, writable_bytes_of(cost)),
                   kForever);
    measured.idle_share = std::max(measured.idle_share, cost.cpu_s / cost.wall_s);
  }
  transport.close(60);
  std::sort(seconds.begin(), seconds.end());
  if (leads) measured.seconds = std::move(seconds);
}

void report_rounds(const Options& options, const Measurement& measured,
                   const std::string& transport, int workers) {
  const BenchJob& job = options.job;
  const double gb = 2e-9 * double(job.bytes);
  fmt::print(
      "push and pull of {} bytes in slices of {}, {} server{} x {} worker{} over {}, {}, {}; the "
      "values are right\n",
      grouped_digits(job.bytes), grouped_digits(job.slice_bytes), job.servers,
      job.servers == 1 ? "" : "s", workers, workers == 1 ? "" : "s", transport, job.policy,
      job.wire);
  fmt::print("time {:.2f} ms (best {:.2f}) over {} rounds: {:.2f} GB/s\n", measured.median() * 1e3,
             measured.best() * 1e3, measured.seconds.size(), gb / measured.median());
  fmt::print("memcpy of as many bytes {:.2f} ms: {:.2f} times that\n", measured.memcpy_s * 1e3,
             measured.median() / measured.memcpy_s);
  if (!options.json) return;
  print_answer({{"seconds", measured.median()},
                {"seconds_best", measured.best()},
                {"memcpy_seconds", measured.memcpy_s},
                {"memcpy_ratio", measured.median() / measured.memcpy_s},
                {"gb_s", gb / measured.median()},
                {"transport", transport},
                {"servers", job.servers},
                {"workers", workers},
                {"bytes", job.bytes},
                {"slice_bytes", job.slice_bytes},
                {"policy", job.policy},
                {"wire", job.wire},
                {"iterations", measured.seconds.size()}});
}

void report_idle(const Options& options, const Measurement& measured,
                 const std::string& transport) {
  fmt::print("idle for {} s over {}: the busiest of {} servers used {:.3f} % of a core\n",
             options.idle_s, transport, options.job.servers, 100 * measured.idle_share);
  if (options.json)
    print_answer({{"idle_core_share", measured.idle_share},
                  {"idle_s", options.idle_s},
                  {"transport", transport},
                  {"servers", options.job.servers}});
}

void run_update(const Options& options) {
  set_threads(options.threads);
  const UpdateRates rates = measure_updates({.bytes = options.job.bytes,
                                             .slice_bytes = options.job.slice_bytes,
                                             .iterations = options.iterations,
                                             .wire = options.job.wire});
  fmt::print("updates of {} bytes of weights on {} thread{}, gradients {}\n",
             grouped_digits(options.job.bytes), threads(), threads() == 1 ? "" : "s",
             options.job.wire);
  fmt::print("triad (three arrays, four passes): {:.2f} GB/s\n", rates.triad_gb_per_s);
  nlohmann::json rows = nlohmann::json::array();
  for (const UpdateRow& row : rates.rows) {
    const double ratio = row.gb_per_s / rates.triad_gb_per_s;
    fmt::print("{}, gradients of {} worker{}: {:.2f} ms, {:.2f} GB/s, {:.2f} of the triad\n",
               row.momentum > 0 ? "momentum" : "plain SGD", row.workers,
               row.workers == 1 ? "" : "s", row.seconds * 1e3, row.gb_per_s, ratio);
    rows.push_back({{"workers", row.workers},
                    {"momentum", row.momentum},
                    {"seconds", row.seconds},
                    {"gb_s", row.gb_per_s},
                    {"triad_share", ratio}});
  }
  if (options.json)
    print_answer({{"triad_gb_s", rates.triad_gb_per_s},
                  {"threads", threads()},
                  {"bytes", options.job.bytes},
                  {"wire", options.job.wire},
                  {"updates", rows}});
}

void run(const Options& options) {
  make_wire_code(options.job.wire);
  if (options.job.slice_bytes > options.job.bytes)
    throw ConfigError("--slice {} is more than --bytes {}", options.job.slice_bytes,
                      options.job.bytes);
  if (options.update) return run_update(options);
  const RankOptions ranks{
      .size = options.workers_given ? options.job.workers + options.job.servers : 0,
      .transport = options.transport,
      .default_size = 1 + options.job.servers,
      .size_flag = "--workers and --servers"};
  Measurement measured;
  int workers = 0;
  run_ranks(ranks, [&](World world) {
    make_policy(options.job.policy, world.transport.size() - options.job.servers);
    if (world.transport.rank() == 0) workers = world.transport.size() - options.job.servers;
    measure(options, world, measured);
  });
  if (workers == 0) return;  // another process reports
  if (options.idle_s > 0)
    report_idle(options, measured, transport_name(ranks));
  else
    report_rounds(options, measured, transport_name(ranks), workers);
}

}  // namespace

void add_bench_ps(CLI::App& bench) {
  auto options =
      std::make_shared<Options>();  // outlives this function: CLI11 writes to it when it parses
  CLI::App* command =
      bench.add_subcommand("ps", "Time push and pull between workers and parameter servers");
  command->add_option("--servers", options->job.servers, "Parameter servers")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  CLI::Option* workers = command
                             ->add_option("--workers", options->job.workers,
                                          "Workers (default 1; in a job, the ranks that are left)")
                             ->check(CLI::Range(1, 1000));
  command
      ->add_option("--transport", options->transport,
                   "Between ranks started here: inproc (threads), shm or zmq")
      ->check(CLI::IsMember({"inproc", "shm", "zmq"}));
  command->add_option("--bytes", options->job.bytes, "Bytes of weights")
      ->check(CLI::Range(std::uint64_t{4096}, std::uint64_t{1} << 32))
      ->capture_default_str();
  command->add_option("--slice", options->job.slice_bytes, "Bytes of a slice at most")
      ->check(CLI::Range(std::uint64_t{4096}, std::uint64_t{1} << 30))
      ->capture_default_str();
  command->add_option("--policy", options->job.policy, "As of convoy train")->capture_default_str();
  command->add_option("--wire", options->job.wire, "f32, bf16, topk:SHARE or 1bit")
      ->capture_default_str();
  command->add_option("--iterations", options->iterations, "Rounds to measure")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--idle", options->idle_s, "Send nothing for so many seconds; tell the cost")
      ->check(CLI::Range(0.1, 3600.0));
  command->add_flag("--update", options->update,
                    "Measure updates instead, in this process, beside a triad");
  command->add_option("--threads", options->threads, "Of --update; 0: all cores")
      ->check(CLI::Range(0, 4096));
  command->add_flag("--json", options->json, "End with one JSON object on one line");
  command->footer(
      "Examples:\n"
      "  convoy bench ps --servers 2 --workers 2 --transport shm\n"
      "  convoy bench ps --idle 3 --transport zmq\n"
      "  convoy bench ps --update --threads 1");
  command->callback([options, workers] {
    options->workers_given = workers->count() > 0;
    run(*options);
  });
}

}  // namespace convoy
