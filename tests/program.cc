#include "program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace convoy {
namespace {

[[noreturn]] void become(const std::vector<std::string>& arguments, const RunOptions& options,
                         int out, int err) {
  if (!options.standard_output.empty())
    out = ::open(options.standard_output.c_str(), O_WRONLY | O_CREAT, 0644);
  if (!options.standard_error.empty() && options.standard_error != "closed")
    err = ::open(options.standard_error.c_str(), O_WRONLY | O_CREAT, 0644);
  ::dup2(out, STDOUT_FILENO);
  if (options.standard_error == "closed")
    ::close(STDERR_FILENO);
  else
    ::dup2(err, STDERR_FILENO);
  if (::chdir(options.folder.c_str()) != 0) ::_exit(125);
  if (options.file_limit_bytes > 0) {
    const rlimit limit{options.file_limit_bytes, options.file_limit_bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  for (const std::string& variable : options.environment)
    ::putenv(const_cast<char*>(variable.c_str()));
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  ::_exit(126);
}

// Appends what is there; false at the end of the stream.
bool drain(int fd, std::string& text) {
  char buffer[4096];
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  if (got > 0) text.append(buffer, std::size_t(got));
  return got > 0;
}

void listen(pid_t child, int out, int err, const RunOptions& options, Ran& ran) {
  bool marked = options.mark.empty();
  pollfd fds[] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    ::poll(fds, 2, -1);
    if (fds[0].revents && !drain(out, ran.out)) fds[0].fd = -1;
    if (fds[1].revents && !drain(err, ran.err)) fds[1].fd = -1;
    fds[0].revents = fds[1].revents = 0;
    if (!marked && ran.err.find(options.mark) != std::string::npos) {
      marked = true;
      options.on_mark(child);
    }
  }
}

}  // namespace

nlohmann::json Ran::answer() const {
  if (out.empty() || out.back() != '\n') throw std::runtime_error("no answer; it said: " + err);
  const std::string lines = out.substr(0, out.size() - 1);
  const std::size_t last = lines.rfind('\n');
  return nlohmann::json::parse(last == std::string::npos ? lines : lines.substr(last + 1));
}

bool Ran::one_line() const {
  return err.starts_with("convoy: ") && std::count(err.begin(), err.end(), '\n') == 1 &&
         err.back() == '\n';
}

Ran run_convoy(const std::vector<std::string>& arguments, const RunOptions& options) {
  std::vector<std::string> words = {CONVOY_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_words(words, options);
}

Ran run_words(const std::vector<std::string>& words, const RunOptions& options) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) become(words, options, out[1], err[1]);
  ::close(out[1]);
  ::close(err[1]);
  Ran ran;
  listen(child, out[0], err[0], options, ran);
  ::close(out[0]);
  ::close(err[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "convoy-test-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TemporaryFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
}

bool TemporaryFolder::has_parts() const {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_))
    if (entry.path().extension() == ".part") return true;
  return false;
}

}  // namespace convoy
