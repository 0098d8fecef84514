#include "data/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kKeptOutput = 8 << 10;

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw DataError("cannot make a pipe: {}", std::strerror(errno));
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close_end(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
};

// Between fork and exec only calls that are safe there.
[[noreturn]] void become(char* const* arguments, const char* folder, int output, int failure) {
  ::signal(SIGPIPE, SIG_DFL);  // what this process ignores, other programs rely on
  ::signal(SIGXFSZ, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, 0);
  ::dup2(output, 1);
  ::dup2(output, 2);
  if (::chdir(folder) == 0) ::execvp(arguments[0], arguments);
  const int error = errno;
  const ssize_t told = ::write(failure, &error, sizeof error);
  ::_exit(told > 0 ? 127 : 126);
}

// Collects what the child says until it closes its end; false when the deadline came first.
bool collect(int fd, double end_s, std::string& output) {
  char chunk[4096];
  for (;;) {
    const double left_s = end_s - now_s();
    if (left_s <= 0) return false;
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, int(std::min(left_s * 1000 + 1, 60000.0)));
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    const ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    output.append(chunk, std::size_t(got));
    if (output.size() > kKeptOutput) output.erase(0, output.size() - kKeptOutput);
  }
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& command, const std::filesystem::path& folder,
                      double deadline_s) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  Pipe output, failure;
  const pid_t child = ::fork();
  if (child < 0) throw DataError("{}: cannot start: {}", command[0], std::strerror(errno));
  if (child == 0) become(arguments.data(), folder.c_str(), output.write_end, failure.write_end);
  Pipe::close_end(output.write_end);
  Pipe::close_end(failure.write_end);

  ChildResult result;
  result.late = !collect(output.read_end, now_s() + deadline_s, result.output);
  if (result.late) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  int error = 0;
  if (::read(failure.read_end, &error, sizeof error) == ssize_t(sizeof error)) {
    if (error != ENOENT) throw DataError("{}: cannot start: {}", command[0], std::strerror(error));
    result.found = false;
  }
  return result;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "convoy-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw DataError("{}: cannot create a temporary folder: {}", pattern, std::strerror(errno));
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace convoy
