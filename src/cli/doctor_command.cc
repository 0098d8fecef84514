#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "kernels/cpu.h"
#include "kernels/parallel.h"
#include "kernels/peak.h"

namespace convoy {
namespace {

struct Findings {
  Cpu cpu;
  bool onednn_capped = false;
  int threads = 1;
  double gemm_f32_gflops = 0;
  double gemm_bf16_gflops = 0;
  std::string shared_pages;  // see shared_pages()
};

constexpr const char* kSharedPages = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

// Whether memory that processes share may lie on large pages: the kernel's choice, in brackets.
std::string shared_pages() {
  std::ifstream file(kSharedPages);
  std::string word;
  while (file >> word)
    if (word.starts_with('[') && word.ends_with(']')) return word.substr(1, word.size() - 2);
  return "unknown";
}

std::string pages_verdict(const std::string& choice) {
  if (choice != "never") return "For what workers of this host share.";
  return fmt::format("Several workers on this host are faster after echo advise > {}.",
                     kSharedPages);
}

Findings examine(int wanted_threads) {
  Findings found;
  found.cpu = cpu();
  found.onednn_capped = cap_onednn_isa();
  set_threads(wanted_threads);
  found.threads = threads();
  found.shared_pages = shared_pages();
  found.gemm_f32_gflops = gemm_f32_gflops();
  found.gemm_bf16_gflops = found.cpu.multiplies_bf16() ? gemm_bf16_gflops() : found.gemm_f32_gflops;
  return found;
}

std::string amx_verdict(const Cpu& cpu) {
  if (cpu.amx_works && cpu.amx_palette) return "A tile product gave the right answer.";
  if (cpu.amx_works)
    return "A tile product gave the right answer, though the hypervisor hides the tiles' "
           "description.";
  if (cpu.amx_bf16)
    return "The CPU announces it, but the kernel or the hypervisor does not let us use it.";
  return cpu.avx512_bf16 ? "This CPU has none; it multiplies bf16 by AVX-512."
                         : "This CPU has none; training in bf16 is possible but brings no speed.";
}

std::string bf16_verdict(const Findings& found) {
  if (!found.cpu.multiplies_bf16()) return "Multiplied as f32: use --precision f32.";
  return fmt::format("{:.1f} times f32.", found.gemm_bf16_gflops / found.gemm_f32_gflops);
}

std::string thread_verdict(const Findings& found) {
  if (found.threads > found.cpu.cores)
    return fmt::format(
        "More than the {} cores: threads will wait for each other; use --threads {}.",
        found.cpu.cores, found.cpu.cores);
  if (found.threads < found.cpu.cores)
    return fmt::format("{} of {} cores stay free.", found.cpu.cores - found.threads,
                       found.cpu.cores);
  return "One worker with a thread per core.";
}

std::string memory_verdict(std::uint64_t bytes) {
  constexpr double kGib = 1 << 30;
  if (bytes < 4 * kGib) return "Enough for the small networks; take small batches at 224 px.";
  return "Enough for every network of the zoo at moderate batch sizes.";
}

void print_table(const Findings& found) {
  const std::vector<std::vector<std::string>> rows = {
      {"cpu", found.cpu.model, ""},
      {"isa", found.cpu.isa(), "The widest instructions that work here."},
      {"amx", found.cpu.amx_works ? "works" : "absent", amx_verdict(found.cpu)},
      {"oneDNN", found.onednn_capped ? "capped" : "not capped",
       found.onednn_capped
           ? "Kept off AMX, where it would crash for want of the tiles' description."
           : "It may use all that it finds."},
      {"cores", fmt::format("{}", found.cpu.cores), "That this process may run on."},
      {"memory", fmt::format("{:.1f} GiB", found.cpu.memory_bytes / double(1 << 30)),
       memory_verdict(found.cpu.memory_bytes)},
      {"2 MB pages", found.shared_pages, pages_verdict(found.shared_pages)},
      {"threads", fmt::format("{}", found.threads), thread_verdict(found)},
      {"f32 peak", fmt::format("{:.0f} GFLOP/s", found.gemm_f32_gflops),
       "Products of 640 x 640 matrices on every thread, measured now."},
      {"bf16 peak", fmt::format("{:.0f} GFLOP/s", found.gemm_bf16_gflops), bf16_verdict(found)},
  };
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row[1].size());
  for (const auto& row : rows) {
    std::string line = fmt::format("{:<10} {:<{}}  {}", row[0], row[1], width, row[2]);
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
}

void print_json(const Findings& found) {
  const auto rounded = [](double value) { return std::round(value * 10) / 10; };
  const nlohmann::json answer = {
      {"cpu", found.cpu.model},
      {"isa", found.cpu.isa()},
      {"amx", found.cpu.amx_works ? "works" : "absent"},
      {"amx_announced", found.cpu.amx_bf16},
      {"amx_palette", found.cpu.amx_palette},
      {"onednn_capped", found.onednn_capped},
      {"cores", found.cpu.cores},
      {"memory_bytes", found.cpu.memory_bytes},
      {"shared_huge_pages", found.shared_pages},
      {"threads", found.threads},
      {"gemm_f32_gflops", rounded(found.gemm_f32_gflops)},
      {"gemm_bf16_gflops", rounded(found.gemm_bf16_gflops)},
  };
  print_answer(answer);
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  struct Options {
    bool json = false;
    int threads = 0;
  };
  auto options =
      std::make_shared<Options>();  // outlives this function: CLI11 writes to it when it parses
  CLI::App* command = app.add_subcommand("doctor", "What this machine can do for training");
  command->add_flag("--json", options->json, "End with one JSON object on one line");
  command->add_option("--threads", options->threads, "Threads to measure with; 0: all cores")
      ->check(CLI::Range(0, 4096));
  command->footer("Examples:\n  convoy doctor\n  convoy doctor --json");
  command->callback([options] {
    const Findings found = examine(options->threads);
    if (options->json)
      print_json(found);
    else
      print_table(found);
  });
}

}  // namespace convoy
