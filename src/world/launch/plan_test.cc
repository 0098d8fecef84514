#include "world/launch/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LaunchPlan plan(int size, int servers, const std::string& place) {
  LaunchOptions options;
  options.command = {"program"};
  options.program = "convoy";
  options.size = size;
  options.hosts = parse_hosts("a slots=2\nb slots=1\nc slots=4\n", "hosts");
  options.address = "127.0.0.1";
  options.servers = servers;
  options.place = place;
  return make_plan(options);
}

std::string error_of(int size, int servers, const std::string& place) {
  try {
    plan(size, servers, place);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(LaunchPlan, ServersStandOnOneHostAfterTheOther) {
  EXPECT_THAT(plan(7, 3, "spread").job.host_of, ElementsAre(0, 2, 2, 2, 0, 1, 2));
  EXPECT_THAT(plan(7, 3, "").job.host_of, ElementsAre(0, 2, 2, 2, 0, 1, 2));
  // The first host keeps a slot for rank 0; hosts that are full are left out.
  EXPECT_THAT(plan(7, 5, "spread").job.host_of, ElementsAre(0, 2, 0, 1, 2, 2, 2));
  EXPECT_THAT(plan(4, 2, "apart").job.host_of, ElementsAre(0, 0, 1, 2));
}

TEST(LaunchPlan, ServersStandWhereTheyAreSaidTo) {
  const LaunchPlan chosen = plan(5, 2, "2,0");
  EXPECT_THAT(chosen.job.host_of, ElementsAre(0, 1, 2, 2, 0));
  EXPECT_THAT(chosen.hosts[0].ranks, ElementsAre(0, 4));
  EXPECT_THAT(chosen.hosts[2].ranks, ElementsAre(2, 3));
}

TEST(LaunchPlan, HostsWithoutRanksAreLeftOut) {
  const LaunchPlan chosen = plan(3, 1, "2");
  ASSERT_EQ(chosen.hosts.size(), 2u);
  EXPECT_EQ(chosen.hosts[1].name, "c");
  EXPECT_THAT(chosen.job.host_of, ElementsAre(0, 0, 1));
  EXPECT_THAT(chosen.job.hosts, ElementsAre("a", "c"));
}

TEST(LaunchPlan, PlacesThatDoNotExistAreNamed) {
  EXPECT_THAT(error_of(4, 2, "0,3"), HasSubstr("--place 0,3: there are hosts 0 to 2"));
  EXPECT_THAT(error_of(4, 2, "1,1"), HasSubstr("host 1 (b) has no slot for server 1"));
  EXPECT_THAT(error_of(4, 2, "1"), HasSubstr("a host for each of the 2 servers"));
  EXPECT_THAT(error_of(4, 2, "1,x"), HasSubstr("write apart, spread"));
  EXPECT_THAT(error_of(4, 2, "-1,0"), HasSubstr("write apart, spread"));
  EXPECT_THAT(error_of(8, 2, "spread"), HasSubstr("the hosts have 7 slots"));
}

}  // namespace
}  // namespace convoy
