#include "world/launch/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

Job small_job() {
  Job job;
  job.id = "0123456789abcdef";
  job.size = 2;
  job.hosts = {"a", "b"};
  job.host_of = {0, 1};
  job.transport = "zmq";
  job.keys = {"public", "secret"};
  job.encrypt = false;
  job.cores = 3;
  job.oversubscribed = true;
  return job;
}

TEST(Frames, ComeTogetherFromAnyPieces) {
  const std::string bytes = "welcome\n" + std::string(kAgentHello) +
                            encode_frame(FrameKind::output, 3, "abc\n") +
                            encode_frame(FrameKind::done, 0, "");
  FrameReader reader;
  std::vector<Frame> frames;
  bool greeted = false;
  for (const char letter : bytes) {
    reader.add({&letter, 1});
    if (!greeted) greeted = reader.skip_past(kAgentHello);
    while (greeted) {
      const auto frame = reader.next();
      if (!frame) break;
      frames.push_back(*frame);
    }
  }
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].kind, FrameKind::output);
  EXPECT_EQ(frames[0].rank, 3);
  EXPECT_EQ(frames[0].bytes, "abc\n");
  EXPECT_EQ(frames[1].kind, FrameKind::done);
}

TEST(Frames, OtherBytesAreRefused) {
  FrameReader unknown, endless;
  unknown.add("what is this about");
  EXPECT_THROW(unknown.next(), TransportError);
  std::string large = encode_frame(FrameKind::output, 0, "");
  large[8] = large[9] = large[10] = large[11] = '\x7f';
  endless.add(large);
  EXPECT_THROW(endless.next(), TransportError);
}

TEST(Frames, PartsAndEndsTravelUnchanged) {
  const Part part{.job = small_job(),
                  .ranks = {0, 1},
                  .command = {"run", "not UTF-8: \xff\xfe", ""},
                  .folder = "/a b",
                  .environment = {{"A", "1"}},
                  .cores_per_rank = 2};
  const Part copy = Part::decode(part.encode());
  EXPECT_EQ(copy.command, part.command);
  EXPECT_EQ(copy.ranks, part.ranks);
  EXPECT_EQ(copy.folder, part.folder);
  EXPECT_EQ(copy.environment, part.environment);
  EXPECT_EQ(copy.cores_per_rank, 2);
  EXPECT_EQ(copy.job.to_json(), part.job.to_json());
  EXPECT_THROW(Part::decode("no part"), ConfigError);

  const End end{.pid = 7, .code = 1, .lost = 2, .why = "gone"};
  EXPECT_EQ(End::decode(end.encode()).why, "gone");
  EXPECT_EQ(End::decode(end.encode()).lost, 2);
}

}  // namespace
}  // namespace convoy
