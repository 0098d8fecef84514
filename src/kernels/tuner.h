// Chooses between ways to compute the same thing by timing them once. Choices are kept in a file,
// so that the next run makes the same choice at once, and computes the same bits. Where several
// processes time the same thing at once (workers of a first run do), the first to write decides for
// all.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>

namespace convoy {

class Tuner {
 public:
  // `file` may not exist yet; an unreadable one is started anew, an unwritable one is done without
  // (each choice is then made again in the next process). `machine` keeps the choices of unlike
  // machines apart.
  Tuner(std::filesystem::path file, std::string machine);

  struct Candidate {
    std::string name;
    std::function<double()> seconds;  // runs once and returns the time
  };
  // The remembered choice for `key`, or the fastest candidate, found by timing; a later candidate
  // must win by a tenth. Whoever uses the same file is given the same.
  std::string choose(const std::string& key, std::span<const Candidate> candidates);
  // The remembered choice, or `otherwise`.
  std::string recall(const std::string& key, const std::string& otherwise) const;

 private:
  void load();
  std::string settle(const std::string& key, const std::string& winner,
                     std::span<const Candidate> candidates);

  std::filesystem::path file_;
  std::string machine_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> choices_;
};

// $XDG_CACHE_HOME/convoy/tuner.json or ~/.cache/convoy/tuner.json.
std::filesystem::path default_tuner_file();

}  // namespace convoy
