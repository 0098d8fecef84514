// convoy net: latency and bandwidth between every two ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/chart.h"
#include "cli/command.h"
#include "cli/ranks.h"
#include "sync/link_probe.h"

namespace convoy {
namespace {

struct Options {
  RankOptions ranks;
  ProbeOptions probe;
  bool json = false;
};

constexpr int kLargestMatrix = 16;

std::string duration_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

std::string bandwidth_text(double bytes_per_s) {
  return bytes_per_s < 1e9 ? fmt::format("{:.1f} MB/s", bytes_per_s / 1e6)
                           : fmt::format("{:.2f} GB/s", bytes_per_s / 1e9);
}

std::string size_text(std::size_t bytes) {
  if (bytes >= std::size_t{1} << 20) return fmt::format("{} MiB", bytes >> 20);
  return bytes >= 1024 ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} B", bytes);
}

void print_matrix(const std::vector<LinkCurve>& curves, int ranks) {
  if (ranks > kLargestMatrix) {
    fmt::print("{} ranks: the matrix is in --json\n", ranks);
    return;
  }
  fmt::print("latency / bandwidth, from the rank of the row to that of the column\n{:>6}", "");
  for (int to = 0; to < ranks; ++to) fmt::print(" {:>22}", to);
  fmt::print("\n");
  for (int from = 0; from < ranks; ++from) {
    fmt::print("{:>6}", from);
    for (int to = 0; to < ranks; ++to) {
      const auto curve = std::find_if(curves.begin(), curves.end(), [&](const LinkCurve& one) {
        return one.from == from && one.to == to;
      });
      fmt::print(" {:>22}", curve == curves.end()
                                ? "-"
                                : fmt::format("{} / {}", duration_text(curve->fit.alpha_s),
                                              bandwidth_text(curve->fit.beta_bytes_per_s)));
    }
    fmt::print("\n");
  }
}

void print_chart(const std::vector<LinkCurve>& curves) {
  std::vector<Curve> drawn;
  double slowest = 1e300, fastest = 0;
  for (const LinkCurve& link : curves) {
    Curve& curve = drawn.emplace_back();
    for (const LinkPoint& point : link.points) {
      curve.emplace_back(double(point.bytes), point.bytes_per_s());
      slowest = std::min(slowest, point.bytes_per_s());
      fastest = std::max(fastest, point.bytes_per_s());
    }
  }
  const std::vector<std::string> lines = draw_chart(drawn, {});
  if (lines.empty()) return;
  fmt::print("bandwidth by message size, {}\n",
             curves.size() == 1 ? "one link" : fmt::format("{} links", curves.size()));
  for (std::size_t line = 0; line < lines.size(); ++line)
    fmt::print("{:>12} {}\n",
               line == 0                  ? bandwidth_text(fastest)
               : line + 1 == lines.size() ? bandwidth_text(slowest)
                                          : "",
               lines[line]);
  fmt::print("{:>12} {:<30}{:>30}\n", "", size_text(curves[0].points.front().bytes),
             size_text(curves[0].points.back().bytes));
}

void print_slow(const std::vector<LinkCurve>& curves) {
  const std::vector<std::size_t> slow = slow_links(curves);
  if (slow.empty()) {
    fmt::print("no link is much slower than the others\n");
    return;
  }
  for (std::size_t place : slow) {
    const LinkCurve& link = curves[place];
    fmt::print("slow link: rank {} to rank {}: {} and {}\n", link.from, link.to,
               duration_text(link.fit.alpha_s), bandwidth_text(link.fit.beta_bytes_per_s));
  }
}

nlohmann::json answer(const std::vector<LinkCurve>& curves, int ranks,
                      const std::string& transport) {
  nlohmann::json links = nlohmann::json::array();
  for (const LinkCurve& curve : curves) {
    nlohmann::json points = nlohmann::json::array();
    for (const LinkPoint& point : curve.points)
      points.push_back({{"bytes", point.bytes},
                        {"seconds", point.seconds},
                        {"gb_s", point.bytes_per_s() / 1e9}});
    links.push_back({{"from", curve.from},
                     {"to", curve.to},
                     {"alpha_s", curve.fit.alpha_s},
                     {"beta_gb_s", curve.fit.beta_bytes_per_s / 1e9},
                     {"points", points}});
  }
  nlohmann::json slow = nlohmann::json::array();
  for (std::size_t place : slow_links(curves))
    slow.push_back({{"from", curves[place].from}, {"to", curves[place].to}});
  return {{"ranks", ranks}, {"transport", transport}, {"links", links}, {"slow", slow}};
}

void run(const Options& options) {
  std::vector<LinkCurve> curves;
  int ranks = 0;
  const std::string transport = transport_name(options.ranks);
  run_ranks(options.ranks, [&](World world) {
    if (world.transport.size() < 2)
      throw ConfigError("convoy net needs at least two ranks: add -n 2");
    Communicator communicator(world.runtime, world.transport, {.timeout_s = 600});
    std::vector<LinkCurve> found = probe_links(communicator, options.probe);
    communicator.barrier();
    const bool first = world.transport.rank() == 0;
    const int size = world.transport.size();
    world.transport.close(60);
    if (!first) return;
    curves = std::move(found);
    ranks = size;
  });
  if (curves.empty()) return;
  fmt::print("{} ranks over {}\n", ranks, transport);
  print_matrix(curves, ranks);
  print_slow(curves);
  print_chart(curves);
  if (options.json) print_answer(answer(curves, ranks, transport));
}

}  // namespace

void add_net_command(CLI::App& app) {
  auto options =
      std::make_shared<Options>();  // outlives this function: CLI11 writes to it when it parses
  CLI::App* command =
      app.add_subcommand("net", "Measure latency and bandwidth between every two ranks");
  add_rank_options(*command, options->ranks);
  command->add_option("--max-bytes", options->probe.most_bytes, "Largest message")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 32))
      ->capture_default_str();
  command
      ->add_option("--seconds", options->probe.seconds_per_size,
                   "How long to measure one size on one link")
      ->check(CLI::Range(1e-4, 60.0))
      ->capture_default_str();
  command->add_flag("--json", options->json, "End with one JSON object on one line");
  command->footer(
      "Examples:\n"
      "  convoy net -n 4 --transport shm\n"
      "  convoy launch --hosts hosts.txt -- convoy net --json");
  command->callback([options] {
    if (options->ranks.size == 1) throw ConfigError("-n 1: convoy net needs at least two ranks");
    run(*options);
  });
}

}  // namespace convoy
