#include "world/launch/lines.h"

#include <gtest/gtest.h>

#include "world/launch/process.h"

namespace convoy {
namespace {

TEST(Lines, LeaveWholeWhateverThePieces) {
  LineCutter cutter;
  EXPECT_EQ(cutter.take("ab"), "");
  EXPECT_EQ(cutter.take("c\nd"), "abc\n");
  EXPECT_EQ(cutter.take("\n\ne"), "d\n\n");
  EXPECT_EQ(cutter.take(""), "");
  EXPECT_EQ(cutter.rest(), "e");
  EXPECT_EQ(cutter.rest(), "");
}

TEST(Lines, AnEndlessLineIsCut) {
  LineCutter cutter;
  const std::string piece(1 << 20, 'x');
  std::size_t out = 0;
  for (int i = 0; i < 40; ++i) out += cutter.take(piece).size();
  EXPECT_EQ(out + cutter.rest().size(), 40 * piece.size());
  EXPECT_GT(out, 0u);
}

std::string written(bool tagged, const std::vector<std::pair<int, std::string>>& pieces) {
  Pipe pipe = make_pipe();
  TaggedOutput output(pipe.write.get(), tagged);
  for (const auto& [rank, text] : pieces) output.add(rank, text);
  output.sink().flush(10);
  EXPECT_FALSE(output.sink().pending());
  pipe.write.reset();
  std::string all;
  while (read_some(pipe.read.get(), all)) {
  }
  return all;
}

TEST(Lines, TagsStandBeforeEveryLine) {
  EXPECT_EQ(written(true, {{0, "a\nb\n"}, {12, "c\n"}}), "[0] a\n[0] b\n[12] c\n");
  EXPECT_EQ(written(false, {{0, "a\nb\n"}, {12, "c\n"}}), "a\nb\nc\n");
}

TEST(Lines, AnUnfinishedLineIsEndedOnlyForAnother) {
  EXPECT_EQ(written(true, {{0, "a\nb"}}), "[0] a\n[0] b");
  EXPECT_EQ(written(true, {{0, "a"}, {1, "b\n"}}), "[0] a\n[1] b\n");
  EXPECT_EQ(written(false, {{0, "a\nb"}, {1, "c"}}), "a\nb\nc");
}

TEST(Lines, ASinkThatCannotWriteSaysSoAndDropsTheRest) {
  Pipe pipe = make_pipe();
  Sink sink(pipe.read.get());  // the wrong end
  sink.add("text");
  sink.pump();
  EXPECT_NE(sink.error(), 0);
  sink.add("more");
  EXPECT_FALSE(sink.pending());
}

}  // namespace
}  // namespace convoy
