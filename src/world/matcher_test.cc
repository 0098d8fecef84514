#include "world/matcher.h"

#include <gtest/gtest.h>

#include <array>

#include "world/inbox.h"

namespace convoy {
namespace {

using Bytes = std::array<std::byte, 16>;

TEST(Matcher, GivesAMessageToTheReceiveThatWasPostedFirst) {
  Matcher matcher(4);
  Bytes one, two;
  const Ticket any = matcher.open_recv(kAnyRank, 7, one).ticket;
  const Ticket specific = matcher.open_recv(2, 7, two).ticket;
  EXPECT_EQ(matcher.arrive(2, 7, 4, 0), any);
  EXPECT_EQ(matcher.arrive(2, 7, 4, 0), specific);
  EXPECT_EQ(matcher.arrive(2, 7, 4, 9), std::nullopt);
  EXPECT_EQ(matcher.open_recv(1, 7, one).early, std::nullopt);
  EXPECT_EQ(matcher.open_recv(2, 7, one).early, 9u);
}

TEST(Matcher, KeepsEarlyMessagesInOrderForEverySenderAndTag) {
  Matcher matcher(8);
  Bytes buffer;
  constexpr int kRounds = 50;
  for (int round = 0; round < kRounds; ++round)
    for (int from = 0; from < 8; ++from)
      for (Tag tag = 0; tag < 20; ++tag)
        EXPECT_FALSE(matcher.arrive(from, tag, 1, round * 1000 + from * 100 + tag));
  for (Tag tag = 20; tag-- > 0;)
    for (int from = 0; from < 8; ++from)
      for (int round = 0; round < kRounds; ++round)
        EXPECT_EQ(matcher.open_recv(from, tag, buffer).early, round * 1000u + from * 100 + tag);
}

TEST(Matcher, ATicketIsUsedUpOnce) {
  Matcher matcher(2);
  Bytes buffer;
  const Ticket first = matcher.open_recv(1, 0, buffer).ticket;
  matcher.arrive(1, 0, 3, 0);
  EXPECT_EQ(matcher.buffer(first).size(), 3u);
  EXPECT_FALSE(matcher.take_done({&first, 1}));
  matcher.finish(first);
  const auto done = matcher.take_done({&first, 1});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->bytes, 3u);
  EXPECT_EQ(done->rank, 1);
  const Ticket second = matcher.open_recv(1, 0, buffer).ticket;
  EXPECT_NE(first, second);
  matcher.give_up(first);
  EXPECT_TRUE(matcher.is_open(second));
  EXPECT_DEATH(static_cast<void>(matcher.take_done({&first, 1})), "used up");
}

TEST(Matcher, FailsOnWhatItsPeerTookAlong) {
  Matcher matcher(4);
  Bytes buffer;
  const Ticket send = matcher.open_send(3, 8);
  const Ticket recv = matcher.open_recv(3, 0, buffer).ticket;
  const Ticket other = matcher.open_recv(2, 0, buffer).ticket;
  EXPECT_FALSE(matcher.arrive(3, 5, 1, 77));
  matcher.lose(3, "test");
  matcher.lose(3, "later reasons do not count");
  for (const Ticket ticket : {send, recv, recv, matcher.open_send(3, 1)}) try {
      matcher.take_done({&ticket, 1});
      ADD_FAILURE() << "no loss noticed";
    } catch (const PeerLost& lost) {
      EXPECT_EQ(lost.rank(), 3);
      EXPECT_STREQ(lost.what(), "rank 3 is lost: test");
    }
  EXPECT_EQ(matcher.open_recv(3, 5, buffer).early, 77u);
  EXPECT_FALSE(matcher.take_done({&other, 1}));
  EXPECT_EQ(matcher.open_sends(), 0);
}

TEST(Matcher, TellsAReceiveFromAnyRankOfEveryLossOnce) {
  Matcher matcher(4);
  Bytes buffer;
  const Ticket any = matcher.open_recv(kAnyRank, 0, buffer).ticket;
  matcher.lose(1, "one");
  matcher.leave(2);
  matcher.lose(3, "three");
  EXPECT_THROW(matcher.take_done({&any, 1}), PeerLost);
  EXPECT_THROW(matcher.take_done({&any, 1}), PeerLost);
  EXPECT_FALSE(matcher.take_done({&any, 1}));
  const Ticket later = matcher.open_recv(kAnyRank, 0, buffer).ticket;
  EXPECT_EQ(matcher.arrive(0, 0, 0, 0), any);
  EXPECT_EQ(matcher.arrive(0, 0, 0, 0), later);
  matcher.finish(later);
  EXPECT_EQ(matcher.take_done({&later, 1})->rank, 0);
}

TEST(Inbox, AMessageInPiecesGoesStraightToItsBufferOrIsKept) {
  Inbox inbox(2);
  Bytes buffer{};
  const Ticket posted = inbox.recv(1, 0, buffer);
  const Inbox::Arrival direct = inbox.begin(1, 0, 16);
  EXPECT_EQ(inbox.bytes_of(direct), buffer.data());
  EXPECT_FALSE(inbox.matcher().take_done({&posted, 1}));
  inbox.finish(direct);
  EXPECT_TRUE(inbox.matcher().take_done({&posted, 1}));

  const Inbox::Arrival early = inbox.begin(1, 0, 2);
  inbox.bytes_of(early)[0] = std::byte{1};
  const Ticket late = inbox.recv(1, 0, buffer);
  inbox.bytes_of(early)[1] = std::byte{2};
  inbox.finish(early);
  EXPECT_EQ(inbox.matcher().take_done({&late, 1})->bytes, 2u);
  EXPECT_EQ(buffer[0], std::byte{1});
  EXPECT_EQ(buffer[1], std::byte{2});
}

TEST(Inbox, DropsTheRestOfWhatNobodyWants) {
  Inbox inbox(2);
  Bytes buffer{};
  const Ticket posted = inbox.recv(1, 0, buffer);
  const Inbox::Arrival arrival = inbox.begin(1, 0, 16);
  inbox.matcher().give_up(posted);
  EXPECT_EQ(inbox.bytes_of(arrival), nullptr);
  inbox.finish(arrival);
  const Ticket short_one = inbox.recv(1, 0, std::span(buffer).first(3));
  const Inbox::Arrival too_long = inbox.begin(1, 0, 4);
  EXPECT_EQ(inbox.bytes_of(too_long), nullptr);
  inbox.finish(too_long);
  EXPECT_THROW(inbox.matcher().take_done({&short_one, 1}), TransportError);

  const Inbox::Arrival half = inbox.begin(1, 3, 16);
  inbox.abandon(half);
  inbox.matcher().lose(1, "test");
  const Ticket never = inbox.recv(1, 3, buffer);
  EXPECT_THROW(inbox.matcher().take_done({&never, 1}), PeerLost);
}

}  // namespace
}  // namespace convoy
