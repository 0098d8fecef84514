// Runs the built program as a user would and keeps what it said.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convoy {

struct Ran {
  int code = -1;  // exit code; 128 + signal where a signal ended it
  std::string out;
  std::string err;

  nlohmann::json answer() const;  // the last line of standard output
  // Whether standard error ends with exactly one line "convoy: ...", and nothing came before it.
  bool one_line() const;
};

struct RunOptions {
  std::filesystem::path folder = ".";         // where it runs
  std::vector<std::string> environment = {};  // more of it, NAME=value
  std::size_t file_limit_bytes = 0;           // RLIMIT_FSIZE; 0: none
  std::string standard_output = {};           // a file instead of a pipe
  std::string standard_error = {};            // the same; "closed": none at all
  // Called once `mark` has appeared on standard error.
  std::string mark = {};
  std::function<void(pid_t)> on_mark = {};
};

Ran run_convoy(const std::vector<std::string>& arguments, const RunOptions& options = {});
// Another program with its arguments, found as a shell finds it.
Ran run_words(const std::vector<std::string>& words, const RunOptions& options = {});

// A fresh folder, removed with all it holds.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const;
  bool has_parts() const;  // any unfinished file anywhere below

 private:
  std::filesystem::path path_;
};

}  // namespace convoy
