// convoy launch over several hosts: agents that are plain scripts, and network namespaces.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "program.h"

namespace convoy {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

// Hosts that are this machine, behind a script that gets the host's name before the command.
class LaunchHosts : public ::testing::Test {
 protected:
  void script(const std::string& name, const std::string& text) {
    folder_.write(name, "#!/bin/sh\n" + text);
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Ran run(Words flags, const Words& command) {
    flags.insert(flags.begin(), {"launch", "--hosts", path("hosts")});
    flags.push_back("--");
    flags.insert(flags.end(), command.begin(), command.end());
    return run_convoy(flags);
  }

  TemporaryFolder folder_;
};

TEST_F(LaunchHosts, RanksAreSpreadBySlots) {
  script("agent", "echo welcome to $1; host=$1; shift; HOST=$host exec \"$@\"");
  folder_.write("hosts", "a slots=2 address=127.0.0.1\nb address=127.0.0.1  # one\nunused\n");
  const Ran ran =
      run({"-n", "3", "--tag", "--agent", path("agent") + " {}"}, {"sh", "-c", "echo on $HOST"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("[0] on a\n"), HasSubstr("[1] on a\n"), HasSubstr("[2] on b\n")));
}

TEST_F(LaunchHosts, RanksOfTwoHostsMeet) {
  script("agent", "shift; exec \"$@\"");
  folder_.write("hosts", "a slots=2 address=127.0.0.1\nb slots=2 address=127.0.0.1\n");
  const Ran ran = run({"--agent", path("agent") + " {}"}, {CONVOY_PROBE, "ring"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "sum 6\n");
}

TEST_F(LaunchHosts, AFailureOnOneHostEndsTheOther) {
  script("agent", "shift; exec \"$@\"");
  folder_.write("hosts", "a address=127.0.0.1\nb address=127.0.0.1\n");
  const Ran ran = run({"--agent", path("agent") + " {}"},
                      {"sh", "-c", "[ $CONVOY_RANK = 1 ] && kill -SEGV $$; exec sleep 1000"});
  EXPECT_EQ(ran.code, 139);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("rank 1 (pid "), HasSubstr("host b) was killed by signal 11 "
                                                                  "(SIGSEGV)")));
}

TEST_F(LaunchHosts, AnAgentThatFailsIsNamedWithItsLastWords) {
  script("agent", "[ $1 = b ] && { echo 'no route to b' >&2; exit 255; }; shift; exec \"$@\"");
  folder_.write("hosts", "a address=127.0.0.1\nb address=127.0.0.1\n");
  const Ran ran = run({"--agent", path("agent") + " {}"}, {"sleep", "1000"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("host b: agent `"), HasSubstr("exit code 255"),
                             HasSubstr("no route to b")));
}

TEST_F(LaunchHosts, SlowAnAgentThatTalksNonsenseOrNotAtAllIsNamed) {
  script("agent", "echo convoy-agent-1; echo what is this, and what is it for; exec sleep 1000");
  folder_.write("hosts", "a address=127.0.0.1\n");
  const Ran nonsense = run({"--agent", path("agent") + " {}"}, {"true"});
  EXPECT_EQ(nonsense.code, 1);
  EXPECT_THAT(nonsense.err, HasSubstr("host a: its agent sent unreadable bytes"));

  script("agent", "exec sleep 1000");
  const Ran silent = run({"--agent", path("agent") + " {}", "--start-timeout", "0.2"}, {"true"});
  EXPECT_EQ(silent.code, 1);
  EXPECT_THAT(silent.err, HasSubstr("host a: its agent has not answered"));
}

TEST_F(LaunchHosts, ACommandThatAHostDoesNotHaveIsNamed) {
  folder_.write("hosts", "a agent=no-such-agent\n");
  const Ran agent = run({}, {"true"});
  EXPECT_EQ(agent.code, 2);
  EXPECT_TRUE(agent.one_line()) << agent.err;
  EXPECT_THAT(agent.err, HasSubstr("no-such-agent"));

  script("agent", "shift; exec \"$@\"");
  folder_.write("hosts", "a agent='" + path("agent") + " {}'\n");
  const Ran program = run({}, {"no-such-program"});
  EXPECT_EQ(program.code, 2);
  EXPECT_THAT(program.err, HasSubstr("host a: cannot run no-such-program"));
}

// Namespaces joined by a bridge, named after this process; only root can make them.
class Namespaces {
 public:
  explicit Namespaces(int count) : count_(count) {
    const auto address = [](int i) { return fmt::format("10.213.77.{}", i); };
    must("ip link add {0} type bridge && ip addr add {1}/24 dev {0} && ip link set {0} up",
         bridge(), address(254));
    for (int i = 1; i <= count; ++i)
      must(
          "ip netns add {0} && ip link add {1}v type veth peer name eth0 netns {0} && "
          "ip link set {1}v master {2} up && ip -n {0} addr add {3}/24 dev eth0 && "
          "ip -n {0} link set eth0 up && ip -n {0} link set lo up",
          name(i), name(i), bridge(), address(i));
  }
  ~Namespaces() {
    for (int i = 1; i <= count_; ++i) shell(fmt::format("ip netns del {}", name(i)));
    shell(fmt::format("ip link del {}", bridge()));
  }
  static std::string name(int i) { return fmt::format("c{}n{}", ::getpid() % 100000, i); }
  static std::string bridge() { return fmt::format("c{}b", ::getpid() % 100000); }

 private:
  static bool shell(const std::string& command) { return std::system(command.c_str()) == 0; }
  template <typename... Args>
  static void must(fmt::format_string<Args...> text, Args&&... args) {
    const std::string command = fmt::format(text, std::forward<Args>(args)...);
    if (!shell(command)) throw std::runtime_error("failed: " + command);
  }

  int count_;
};

TEST_F(LaunchHosts, SlowRanksMeetAcrossNetworkNamespaces) {
  if (::geteuid() != 0) return;  // nothing to see without namespaces
  const Namespaces namespaces(2);
  std::string hosts;
  for (const int i : {1, 2})
    hosts += fmt::format("h{} slots=2 address=10.213.77.{} agent=\"ip netns exec {}\"\n", i, i,
                         Namespaces::name(i));
  folder_.write("hosts", hosts);
  const Ran ran = run({}, {CONVOY_PROBE, "ring"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "sum 6\n");
}

}  // namespace
}  // namespace convoy
