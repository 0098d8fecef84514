#include "report/live_access.h"

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(LiveAccess, TokensDiffer) {
  EXPECT_EQ(random_token().size(), 32u);
  EXPECT_NE(random_token(), random_token());
}

TEST(LiveAccess, TokensAreWords) {
  EXPECT_TRUE(is_token(random_token()));
  EXPECT_TRUE(is_token("Long-enough_1"));
  for (const char* text : {"", "short", "with a blank", "semi;colon", "line\nend-of-it"})
    EXPECT_FALSE(is_token(text)) << text;
}

TEST(LiveAccess, SecretsAreEqualOnlyWhole) {
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  EXPECT_FALSE(equal_secrets("abc", "abd"));
  EXPECT_FALSE(equal_secrets("abc", "ab"));
  EXPECT_FALSE(equal_secrets("ab", "abc"));
  EXPECT_FALSE(equal_secrets("", "abc"));
}

TEST(LiveAccess, Cookies) {
  EXPECT_EQ(cookie("a=1; convoy-80=secret; b=2", "convoy-80"), "secret");
  EXPECT_EQ(cookie("convoy-80=secret", "convoy-80"), "secret");
  EXPECT_EQ(cookie("convoy-8=x;convoy-80=", "convoy-80"), "");
  EXPECT_EQ(cookie("convoy-801=x", "convoy-80"), "");
  EXPECT_EQ(cookie("", "convoy-80"), "");
}

TEST(LiveAccess, HostHeadersOfThisMachine) {
  for (const char* header : {"127.0.0.1:8180", "localhost:8180", "localhost", "[::1]:8180"})
    EXPECT_TRUE(is_loopback_header(header)) << header;
  for (const char* header : {"evil.example:8180", "127.evil.example.", "10.0.0.1", "", "[::2]"})
    EXPECT_FALSE(is_loopback_header(header)) << header;
}

}  // namespace
}  // namespace convoy
