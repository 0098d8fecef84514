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

bool is_among(std::span<const Tuner::Candidate> candidates, const std::string& name) {
  return std::ranges::find(candidates, name, &Tuner::Candidate::name) != candidates.end();
}

std::string fastest(std::span<const Tuner::Candidate> candidates) {
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
  return candidates[winner].name;
}

// An object; an empty one where there is none to be read. Only files are read: a pipe might wait.
nlohmann::json read_json(const std::filesystem::path& file) {
  nlohmann::json json;
  std::error_code error;
  if (std::filesystem::is_regular_file(file, error)) {
    std::ifstream in(file);
    json = nlohmann::json::parse(in, nullptr, false);
  }
  return json.is_object() ? json : nlohmann::json::object();
}

}  // namespace

Tuner::Tuner(std::filesystem::path file, std::string machine)
    : file_(std::move(file)), machine_(std::move(machine)) {
  load();
}

std::string Tuner::choose(const std::string& key, std::span<const Candidate> candidates) {
  CHECK(!candidates.empty(), "no candidates for {}", key);
  std::lock_guard lock(mutex_);
  if (const auto known = choices_.find(key);
      known != choices_.end() && is_among(candidates, known->second))
    return known->second;
  if (candidates.size() == 1) return candidates[0].name;
  const std::string choice = settle(key, fastest(candidates), candidates);
  choices_[key] = choice;
  return choice;
}

std::string Tuner::recall(const std::string& key, const std::string& otherwise) const {
  std::lock_guard lock(mutex_);
  const auto known = choices_.find(key);
  return known == choices_.end() ? otherwise : known->second;
}

void Tuner::load() {
  const auto json = read_json(file_);
  if (!json.contains(machine_) || !json[machine_].is_object()) return;
  for (const auto& [key, choice] : json[machine_].items())
    if (choice.is_string()) choices_[key] = choice.get<std::string>();
}

// Writes the winner, unless another process has written one meanwhile: then that one it is.
std::string Tuner::settle(const std::string& key, const std::string& winner,
                          std::span<const Candidate> candidates) {
  try {
    make_folder(file_.parent_path());
    const FolderLock lock = FolderLock::after_others(file_.parent_path());
    auto json = read_json(file_);
    auto& of_machine = json[machine_];
    if (!of_machine.is_object()) of_machine = nlohmann::json::object();
    if (const auto found = of_machine.find(key);
        found != of_machine.end() && found->is_string() && is_among(candidates, *found))
      return *found;
    of_machine[key] = winner;
    write_file_atomically(file_, json.dump(1) + "\n");
  } catch (const DataError&) {
    // A cache that cannot be written is done without.
  }
  return winner;
}

std::filesystem::path default_tuner_file() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::filesystem::path(cache) / "convoy/tuner.json";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".cache/convoy/tuner.json";
  return std::filesystem::temp_directory_path() / "convoy-tuner.json";
}

}  // namespace convoy
