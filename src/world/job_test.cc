#include "world/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "world/launch/mpi_place.h"
#include "world/launch/process.h"

namespace convoy {
namespace {

using ::testing::ElementsAre;

Job four_ranks() {
  Job job;
  job.id = "0123456789abcdef";
  job.rank = 2;
  job.size = 4;
  job.hosts = {"a", "b"};
  job.host_of = {0, 1, 0, 1};
  job.transport = "shm";
  job.segment_fd = 5;
  return job;
}

// An environment variable for as long as this lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Job, ReadsWhatItWrote) {
  const Job job = four_ranks();
  EXPECT_EQ(Job::from_json(job.to_json()).to_json(), job.to_json());
  EXPECT_THAT(job.ranks_of_host(), ElementsAre(0, 2));
}

TEST(Job, RefusesWhatCannotBe) {
  EXPECT_THROW(Job::from_json(""), ConfigError);
  EXPECT_THROW(Job::from_json("{}"), ConfigError);
  Job job = four_ranks();
  job.rank = 4;
  EXPECT_THROW(Job::from_json(job.to_json()), ConfigError);
  job = four_ranks();
  job.host_of = {0, 1, 2, 0};
  EXPECT_THROW(Job::from_json(job.to_json()), ConfigError);
}

TEST(Job, IsHandedOverInADescriptorAndReportsComeBack) {
  EXPECT_FALSE(job_of_process());
  report_failure("nobody listens");
  const Fd file = make_memory_file("job", four_ranks().to_json() + "\n");
  const Variable variable(kJobVariable, std::to_string(file.get()));
  ASSERT_TRUE(job_of_process());
  EXPECT_EQ(job_of_process()->rank, 2);
  EXPECT_EQ(read_failure_report(file.get()).why, "");
  report_failure("rank 3 is lost", 3);
  EXPECT_EQ(read_failure_report(file.get()).why, "rank 3 is lost");
  EXPECT_EQ(read_failure_report(file.get()).lost, 3);
  EXPECT_EQ(job_of_process()->rank, 2);
}

TEST(Job, ADescriptorThatIsClosedOrForeignIsRefused) {
  for (const char* number : {"987654", "x", "-1", ""}) {
    const Variable variable(kJobVariable, number);
    EXPECT_THROW(job_of_process(), ConfigError) << number;
    report_failure("nobody listens");
  }
  const Pipe pipe = make_pipe();
  const Variable variable(kJobVariable, std::to_string(pipe.read.get()));
  EXPECT_THROW(job_of_process(), ConfigError);
}

TEST(MpiPlace, IsWhatMpirunOrSrunSays) {
  EXPECT_FALSE(place_from_mpi_environment());
  {
    const Variable rank("OMPI_COMM_WORLD_RANK", "3"), size("OMPI_COMM_WORLD_SIZE", "4");
    EXPECT_EQ(place_from_mpi_environment()->rank, 3);
    EXPECT_EQ(place_from_mpi_environment()->starter, "mpirun");
  }
  {
    const Variable rank("SLURM_PROCID", "0");  // a batch script, not a step
    EXPECT_FALSE(place_from_mpi_environment());
    const Variable size("SLURM_STEP_NUM_TASKS", "2"), pmix("PMIX_RANK", "1");
    EXPECT_EQ(place_from_mpi_environment()->rank, 1);
    EXPECT_EQ(place_from_mpi_environment()->size, 2);
    EXPECT_EQ(place_from_mpi_environment()->starter, "srun");
  }
  const Variable rank("OMPI_COMM_WORLD_RANK", "4"), size("OMPI_COMM_WORLD_SIZE", "4");
  EXPECT_THROW(place_from_mpi_environment(), ConfigError);
}

}  // namespace
}  // namespace convoy
