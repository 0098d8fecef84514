#include "world/zmq/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "world/zmq/zmq_test_support.h"

namespace convoy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const Job& job, double timeout_s = 30) {
  try {
    join_zmq(job, timeout_s);
  } catch (const TransportError& error) {
    return error.what();
  }
  return "admitted";
}

TEST(Rendezvous, KeysDifferByJob) {
  const JobKeys one = make_job_keys(), other = make_job_keys();
  EXPECT_EQ(one.public_key.size(), 40u);
  EXPECT_EQ(one.secret_key.size(), 40u);
  EXPECT_NE(one.secret_key, other.secret_key);
  EXPECT_NE(one.secret_key, one.public_key);
}

TEST(Rendezvous, KnowsItsMembers) {
  TestJob job({.size = 2});
  EXPECT_THAT(job.rendezvous().missing(), ElementsAre(0, 1));
  EXPECT_GT(job.rendezvous().port(), 0);
  const auto body = [](World world, const RankDie&) { world.transport.close(30); };
  std::thread other([&] { run_zmq_rank(job.job(1), body); });
  run_zmq_rank(job.job(0), body);
  other.join();
  EXPECT_THAT(job.rendezvous().missing(), ElementsAre());
  const std::vector<RankHello> members = job.rendezvous().members();
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[1].rank, 1);
  EXPECT_EQ(members[1].pid, getpid());
  EXPECT_EQ(members[1].host, "loopback");
}

TEST(Rendezvous, NamesWhoHasNotCome) {
  TestJob job({.size = 4});
  EXPECT_THAT(refusal(job.job(1), 0.1), HasSubstr("ranks 0, 2, 3 have not come"));
}

TEST(Rendezvous, RefusesTheWrongJobSizeAndRank) {
  TestJob job({.size = 2});
  Job wrong = job.job(0);
  wrong.id = "fedcba9876543210";
  EXPECT_THAT(refusal(wrong), HasSubstr("it serves job 0123456789abcdef, not fedcba9876543210"));
  wrong = job.job(0);
  wrong.size = 3;
  wrong.host_of.push_back(1);
  EXPECT_THAT(refusal(wrong), HasSubstr("rank 0 of 3 came to a job of 2 ranks"));
}

TEST(Rendezvous, RefusesARankThatIsThereAlready) {
  TestJob job({.size = 2});
  std::thread first([&] { EXPECT_THAT(refusal(job.job(0), 1), HasSubstr("rank 1 has not come")); });
  while (job.rendezvous().members().empty()) std::this_thread::yield();
  EXPECT_THAT(refusal(job.job(0)), HasSubstr("rank 0 is there already"));
  first.join();
}

TEST(Rendezvous, AWrongKeyEndsTheJoin) {
  TestJob job({.size = 2});
  Job wrong = job.job(0);
  wrong.keys = make_job_keys();
  EXPECT_NE(refusal(wrong, 2), "admitted");
  EXPECT_THAT(job.rendezvous().missing(), ElementsAre(0, 1));
}

TEST(Rendezvous, SlowNobodyThereIsAnError) {
  std::string endpoint;
  Job orphan;
  {
    TestJob job({.size = 2});
    orphan = job.job(0);
  }
  EXPECT_NE(refusal(orphan, 2), "admitted");
}

TEST(Rendezvous, RanksEndWhenTheLauncherDoes) {
  auto job = std::make_unique<TestJob>(ZmqTestOptions{.size = 2});
  const Job jobs[] = {job->job(0), job->job(1)};
  std::atomic<int> here = 0;
  const auto body = [&](World world, const RankDie&) {
    ++here;
    EXPECT_THROW(world.transport.wait(world.transport.recv(kAnyRank, 1, {}), 60), TransportError);
  };
  std::thread one([&] { run_zmq_rank(jobs[0], body); });
  std::thread other([&] { run_zmq_rank(jobs[1], body); });
  while (here < 2) std::this_thread::yield();
  job.reset();
  one.join();
  other.join();
}

}  // namespace
}  // namespace convoy
