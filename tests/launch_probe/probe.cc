// A program for the tests of the launcher: joins its job and does what its first argument says.
//   ring     passes a number round all ranks and prints it
//   wait FOLDER     leaves its process id in FOLDER, meets all others, waits for what never comes
//   secrets     says whether the job's secret key shows in its arguments or environment
//   reduce FOLDER ALGORITHM SECONDS     leaves its process id in FOLDER, all-reduces, with a
//   deadline
//       of so many seconds, until an error ends it
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "sync/communicator.h"
#include "world/job.h"
#include "world/mpi/mpi_world.h"

#ifdef CONVOY_OTHER_BUILD
extern const char* const kOther;
const char* const kOther = "the same source, but another build";
#endif

namespace convoy {
namespace {

constexpr double kTimeout_s = 60;

int around(Transport& transport) {
  const int rank = transport.rank(), size = transport.size();
  int sum = 0;
  const auto bytes = std::as_writable_bytes(std::span(&sum, 1));
  if (rank > 0) transport.wait(transport.recv(rank - 1, 1, bytes), kTimeout_s);
  sum += rank;
  transport.wait(transport.send((rank + 1) % size, 1, bytes), kTimeout_s);
  if (rank == 0) transport.wait(transport.recv(size - 1, 1, bytes), kTimeout_s);
  return sum;
}

void ring(World world) {
  const int sum = around(world.transport);
  if (world.transport.rank() == 0) fmt::print("sum {}\n", sum);
  world.transport.close(kTimeout_s);
}

void leave_pid(const Transport& transport, const std::string& folder) {
  write_file_atomically(fmt::format("{}/pid-{}", folder, transport.rank()),
                        std::to_string(::getpid()));
}

void wait(World world, const std::string& folder) {
  Transport& transport = world.transport;
  leave_pid(transport, folder);
  around(transport);
  if (transport.rank() == 0) fmt::print(stderr, "all ready\n");
  std::byte nothing[1];
  transport.wait(transport.recv(kAnyRank, 2, nothing), kTimeout_s);
}

void reduce(World world, const std::string& folder, const CommunicatorOptions& options) {
  leave_pid(world.transport, folder);
  Communicator(world.runtime, world.transport, {.channel = 1}).barrier();  // all have started
  Communicator communicator(world.runtime, world.transport, options);
  std::vector<float> values(1 << 18);
  for (int round = 0;; ++round) {
    if (round == 3 && communicator.index() == 0) fmt::print(stderr, "all ready\n");
    communicator.all_reduce(values);
  }
}

void secrets(const Job& job) {
  for (const char* file : {"/proc/self/environ", "/proc/self/cmdline"}) {
    const std::vector<std::uint8_t> bytes = read_file(file);
    const std::string text(bytes.begin(), bytes.end());
    if (job.keys.secret_key.empty() || text.find(job.keys.secret_key) != std::string::npos)
      throw ConfigError("the secret key is missing, or in {}", file);
  }
  fmt::print("hidden\n");
}

void run(const std::vector<std::string>& words) {
  const std::string& what = words[0];
  const std::optional<Job> job = job_of_process();
  if (!job && !started_by_mpi()) throw ConfigError("start it with convoy launch or mpirun");
  const std::unique_ptr<Membership> membership = job ? join(*job, kTimeout_s) : join_mpi();
  if (what == "wait") return wait(membership->world(), words.at(1));
  if (what == "reduce")
    return reduce(membership->world(), words.at(1),
                  {.algorithm = words.at(2), .timeout_s = std::stod(words.at(3))});
  if (what == "secrets") secrets(*job);
  ring(membership->world());
}

}  // namespace
}  // namespace convoy

int main(int argc, char** argv) {
  int lost = -1;
  std::string why;
  try {
    convoy::run({argv + 1, argv + argc});
    return 0;
  } catch (const convoy::PeerLost& error) {
    lost = error.rank();
    why = error.what();
  } catch (const std::exception& error) {
    why = error.what();
  }
  convoy::report_failure(why, lost);
  fmt::print(stderr, "probe: {}\n", why);
  return 1;
}
