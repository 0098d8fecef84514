#include "lab/virtual_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "data/child.h"
#include "world/launch/hosts.h"

namespace convoy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ChildResult run(const std::vector<std::string>& command) { return run_child(command, ".", 20); }

bool may_make_them() { return virtual_hosts_refused().empty(); }

TEST(VirtualHosts, OnlyRootMayMakeThem) {
  const std::string refused = virtual_hosts_refused();
  EXPECT_EQ(::geteuid() != 0, refused.find("root") != std::string::npos) << refused;
}

TEST(VirtualHosts, ReachOneAnotherOverALinkOfTheRateAndGoAway) {
  if (!may_make_them()) return;  // nothing to see
  std::string space;
  {
    const VirtualHosts hosts({.count = 2, .gbit_per_s = 0.5});
    space = hosts.name(0);
    const ChildResult route =
        run({"ip", "netns", "exec", space, "ip", "route", "get", hosts.address(1)});
    EXPECT_EQ(route.exit_code, 0) << route.output;
    EXPECT_THAT(route.output, HasSubstr("dev eth0"));
    const ChildResult inside = run({"ip", "netns", "exec", space, "tc", "qdisc", "show"});
    EXPECT_THAT(inside.output, HasSubstr("rate 500Mbit"));
    const ChildResult outside = run({"tc", "qdisc", "show"});
    EXPECT_THAT(outside.output, HasSubstr("rate 500Mbit"));

    const std::vector<HostEntry> entries = parse_hosts(hosts.hosts_file(3), "hosts");
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[1].slots, 3);
    EXPECT_EQ(entries[1].address, hosts.address(1));
    EXPECT_THAT(entries[0].agent, ::testing::ElementsAre("ip", "netns", "exec", space));
  }
  EXPECT_THAT(run({"ip", "netns", "list"}).output, Not(HasSubstr(space)));
  EXPECT_THAT(run({"ip", "link", "show"}).output,
              Not(HasSubstr("cv" + std::to_string(::getpid()))));
}

TEST(VirtualHosts, WhatCannotBeMadeWholeLeavesNothing) {
  if (!may_make_them()) return;  // nothing to see
  const std::string taken = "convoy-" + std::to_string(::getpid()) + "-1";
  ASSERT_EQ(run({"ip", "netns", "add", taken}).exit_code, 0);
  EXPECT_THROW(VirtualHosts({.count = 2}), TransportError);
  const std::string spaces = run({"ip", "netns", "list"}).output;
  EXPECT_THAT(spaces, HasSubstr(taken));  // not ours
  EXPECT_THAT(spaces, Not(HasSubstr("convoy-" + std::to_string(::getpid()) + "-0")));
  EXPECT_THAT(run({"ip", "link", "show"}).output,
              Not(HasSubstr("cv" + std::to_string(::getpid()))));
  EXPECT_EQ(run({"ip", "netns", "del", taken}).exit_code, 0);
}

TEST(VirtualHosts, RefusesImpossibleNumbers) {
  EXPECT_THROW(VirtualHosts({.count = 0}), TransportError);
  EXPECT_THROW(VirtualHosts({.count = 251}), TransportError);
}

}  // namespace
}  // namespace convoy
