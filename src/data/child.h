// Other programs, run as children without a shell in between.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace convoy {

struct ChildResult {
  bool found = true;   // false: there is no such program
  int exit_code = 0;   // 128 + signal where one ended it
  bool late = false;   // ended by us at the deadline
  std::string output;  // standard output and error, the last kilobytes
};

// Runs command[0] from PATH with the arguments after it, in `folder`, with nothing on its standard
// input, and waits. Past `deadline_s` the child is ended. Ctrl-C in the terminal reaches it as it
// reaches us.
ChildResult run_child(const std::vector<std::string>& command, const std::filesystem::path& folder,
                      double deadline_s);

// A new, empty folder that is removed with all it holds when this goes.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace convoy
