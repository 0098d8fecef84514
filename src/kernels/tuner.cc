#include "kernels/tuner.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"

namespace convoy {
namespace {

constexpr int kRounds = 3;
constexpr double kMustWinBy = 0.9;

}  // namespace

Tuner::Tuner(std::filesystem::path file, std::string machine)
    : file_(std::move(file)), machine_(std::move(machine)) {
  load();
}

std::string Tuner::choose(const std::string& key, std::span<const Candidate> candidates) {
  CHECK(!candidates.empty(), "no candidates for {}", key);
  std::lock_guard lock(mutex_);
  const auto known = choices_.find(key);
  if (known != choices_.end())
    for (const Candidate& candidate : candidates)
      if (candidate.name == known->second) return candidate.name;
  if (candidates.size() == 1) return candidates[0].name;

  // Interleaved, so that a slow moment of the machine does not decide; the first round warms up.
  std::vector<double> best(candidates.size(), 1e30);
  for (int round = 0; round <= kRounds; ++round)
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const double seconds = candidates[i].seconds();
      if (round > 0) best[i] = std::min(best[i], seconds);
    }
  std::size_t winner = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i)
    if (best[i] < best[winner] * kMustWinBy) winner = i;
  choices_[key] = candidates[winner].name;
  save();
  return candidates[winner].name;
}

std::string Tuner::recall(const std::string& key, const std::string& otherwise) const {
  std::lock_guard lock(mutex_);
  const auto known = choices_.find(key);
  return known == choices_.end() ? otherwise : known->second;
}

void Tuner::load() {
  std::ifstream in(file_);
  if (!in) return;
  const auto json = nlohmann::json::parse(in, nullptr, false);
  if (!json.is_object() || !json.contains(machine_) || !json[machine_].is_object()) return;
  for (const auto& [key, choice] : json[machine_].items())
    if (choice.is_string()) choices_[key] = choice.get<std::string>();
}

// Other processes may have written since we read: their choices are kept.
void Tuner::save() const {
  try {
    nlohmann::json json = nlohmann::json::object();
    if (std::ifstream in(file_); in) {
      auto found = nlohmann::json::parse(in, nullptr, false);
      if (found.is_object()) json = std::move(found);
    }
    for (const auto& [key, choice] : choices_) json[machine_][key] = choice;
    make_folder(file_.parent_path());
    write_file_atomically(file_, json.dump(1) + "\n");
  } catch (const DataError&) {
    // A cache that cannot be written is done without.
  }
}

std::filesystem::path default_tuner_file() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::filesystem::path(cache) / "convoy/tuner.json";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".cache/convoy/tuner.json";
  return std::filesystem::temp_directory_path() / "convoy-tuner.json";
}

}  // namespace convoy
