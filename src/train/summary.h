// What the leading worker tells people and programs about a run.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

#include "train/setup.h"

namespace convoy {

void print_headline(const RunParts& parts, std::FILE* human);
// `run` is its name in the store; empty: its folder's.
nlohmann::json make_answer(const RunParts& parts, const RunView& view, const std::string& run);

// What a run was found to be, besides its figures.
struct Findings {
  std::string run = {};      // its name in the store; empty: it is in none
  std::string verdict = {};  // where the time went, in a sentence
  double cost_s = 0;         // of measuring
  bool recorded = true;      // all of it
};
void print_summary(const RunParts& parts, const RunView& view, const Findings& findings,
                   std::FILE* human);

// "1 epoch", "2,000 epochs".
std::string counted(std::int64_t number, const char* thing);
// "512 = 4 x 128, 117 steps + 96": a batch cut for the workers, and an epoch cut into batches.
std::string batch_text(std::int64_t batch, std::span<const int> weights, std::size_t samples);

}  // namespace convoy
