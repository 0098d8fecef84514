#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "base/log.h"
#include "cli/command.h"
#include "kernels/parallel.h"

namespace {

// Where a standard stream is closed, the next file opened would take its number, and messages would
// end up in a checkpoint. Reading only, so that a write still fails.
void occupy_standard_streams() {
  int fd = ::open("/dev/null", O_RDONLY);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = ::open("/dev/null", O_RDONLY);
  if (fd >= 0) ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  convoy::limit_spinning(argv);
  occupy_standard_streams();
  // A closed pipe and a file size limit are failed writes like any other, reported where they
  // happen.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  convoy::start_log();
  return convoy::run_program(argc, argv);
}
