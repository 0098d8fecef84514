// Training with parameter servers over every transport, as a user starts it: the same weights.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program.h"

namespace convoy {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Slices from a few numbers to a third of a MiB, so that small ones could overtake large ones.
Words served_run(const TemporaryFolder& folder, const std::string& name) {
  return {"train",
          "--model",
          "mnist_cnn",
          "--data",
          "synthetic:1x28x28:10:200",
          "--batch",
          "32",
          "--lr",
          "0.02",
          "--momentum",
          "0.9",
          "--epochs",
          "2",
          "--precision",
          "f32",
          "--threads",
          "1",
          "--sync",
          "ps",
          "--servers",
          "2",
          "--bucket-mib",
          "0.001",
          "--slice-mib",
          "0.3",
          "--store",
          "none",
          "--json",
          "--out",
          (folder / name).string()};
}

std::string weights(const Ran& ran) {
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.code == 0 ? ran.answer().at("weights_sha256").get<std::string>() : "";
}

Words mpirun(int ranks) {
  return {"env",
          "OMPI_ALLOW_RUN_AS_ROOT=1",
          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "mpirun",
          "--oversubscribe",
          "-n",
          std::to_string(ranks),
          CONVOY_PROGRAM};
}

TEST(ServersOver, SlowEveryTransportGiveTheSameBits) {
  const TemporaryFolder folder;
  const Words two = {"--workers", "2"};
  const auto run = [&](const std::string& name, const Words& more) {
    return weights(run_convoy(served_run(folder, name) + two + more));
  };
  for (const Words& how :
       {Words{}, Words{"--invariant"}, Words{"--wire", "bf16"}, Words{"--wire", "topk:0.1"}}) {
    const std::string tag = how.empty() ? "sync" : how.back();
    const std::string expected = run("inproc" + tag, how + Words{"--transport", "inproc"});
    EXPECT_EQ(run("shm" + tag, how + Words{"--transport", "shm"}), expected) << tag;
    EXPECT_EQ(run("zmq" + tag, how + Words{"--transport", "zmq"}), expected) << tag;
    for (int again = 0; again < (how.empty() ? 2 : 1); ++again)
      EXPECT_EQ(weights(run_words(mpirun(4) +
                                  served_run(folder, fmt::format("mpi{}{}", tag, again)) + how)),
                expected)
          << tag;
  }
}

class ServersOnHosts : public ::testing::Test {
 protected:
  ServersOnHosts() {
    folder_.write("hosts",
                  "a slots=3 address=127.0.0.1 agent=env\nb slots=3 address=127.0.0.1 agent=env\n");
  }
  Ran run(const std::string& name, const Words& more) {
    return run_convoy(served_run(folder_, name) + more);
  }
  Words hosts() const { return {"--workers", "2", "--hosts", (folder_ / "hosts").string()}; }

  TemporaryFolder folder_;
};

TEST_F(ServersOnHosts, SlowStandWhereTheyArePlaced) {
  const std::string expected = weights(run("inproc", {"--workers", "2", "--transport", "inproc"}));
  EXPECT_EQ(weights(run("default", hosts())), expected);
  for (const char* place : {"spread", "apart", "1,1", "0,1"})
    EXPECT_EQ(weights(run(place, hosts() + Words{"--place", place})), expected) << place;
}

TEST_F(ServersOnHosts, AreRefusedWhereTheyCannotBe) {
  const auto refused = [&](const Words& more) {
    const Ran ran = run("never", more);
    EXPECT_EQ(ran.code, 2);
    EXPECT_TRUE(ran.one_line()) << ran.err;
    return ran.err;
  };
  EXPECT_THAT(refused({"--workers", "2", "--place", "spread"}), HasSubstr("add --hosts FILE"));
  EXPECT_THAT(refused(hosts() + Words{"--place", "0,2"}), HasSubstr("there are hosts 0 to 1"));
  EXPECT_THAT(refused(hosts() + Words{"--place", "0"}), HasSubstr("each of the 2 servers"));
  EXPECT_THAT(refused(hosts() + Words{"--place", "there"}), HasSubstr("write apart, spread"));
}

}  // namespace
}  // namespace convoy
