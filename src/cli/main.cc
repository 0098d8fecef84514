#include <csignal>

#include "base/log.h"
#include "cli/command.h"

int main(int argc, char** argv) {
  // A closed pipe and a file size limit are failed writes like any other, reported where they
  // happen.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  convoy::start_log();
  return convoy::run_program(argc, argv);
}
