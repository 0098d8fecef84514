#include "world/launch/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Hosts, LinesSayNamesSlotsAddressesAndAgents) {
  const auto hosts = parse_hosts(
      "# all of them\n\nalpha slots=2\n"
      "  beta address=10.0.0.2 agent=\"ip netns exec {} # no comment\" # comment\r\n"
      "gamma",
      "hosts");
  ASSERT_EQ(hosts.size(), 3u);
  EXPECT_EQ(hosts[0].name, "alpha");
  EXPECT_EQ(hosts[0].slots, 2);
  EXPECT_TRUE(hosts[0].agent.empty());
  EXPECT_EQ(hosts[1].address, "10.0.0.2");
  EXPECT_THAT(hosts[1].agent, ElementsAre("ip", "netns", "exec", "beta", "#", "no", "comment"));
  EXPECT_EQ(hosts[2].name, "gamma");
}

TEST(Hosts, ErrorsNameFileLineAndField) {
  const std::pair<const char*, const char*> cases[] = {
      {"a\nb slots=zero\n", "hosts:2: slots=zero"},
      {"a slots=0\n", "hosts:1: slots=0"},
      {"a slots=1025", "hosts:1: slots=1025"},
      {"a slot=2", "unknown field slot="},
      {"a slots", "'slots' is not of the form"},
      {"a address=", "address= has no value"},
      {"a\na\n", "hosts:2: host a stands there twice"},
      {"a agent=\"x", "hosts:1: the quote \" has no end"},
      {"slots=2", "begins with the name"},
      {"-oProxyCommand=x", "begins with the name"},
      {"# nobody\n", "names no host"},
  };
  for (const auto& [text, expected] : cases) {
    try {
      parse_hosts(text, "hosts");
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(expected));
    }
  }
}

TEST(Hosts, RanksFillTheSlotsInTurn) {
  const auto hosts = parse_hosts("a slots=2\nb\nc slots=3\n", "hosts");
  EXPECT_THAT(place_ranks(hosts, 4), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(place_ranks(hosts, 6), ElementsAre(0, 0, 1, 2, 2, 2));
  EXPECT_THROW(place_ranks(hosts, 7), ConfigError);
}

}  // namespace
}  // namespace convoy
