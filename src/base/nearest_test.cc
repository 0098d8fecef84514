#include "base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace convoy {
namespace {

TEST(Nearest, FindsTheSmallestEditDistance) {
  const std::vector<std::string> names = {"resnet18", "resnet34", "resnet50", "vgg16", "alexnet"};
  EXPECT_EQ(nearest("resnet5", names), "resnet50");
  EXPECT_EQ(nearest("resent34", names), "resnet34");
  EXPECT_EQ(nearest("vgg", names), "vgg16");
  EXPECT_EQ(nearest("alxnet", names), "alexnet");
  EXPECT_EQ(nearest("vgg16", names), "vgg16");
}

TEST(Nearest, TheFirstOfEqualsWins) {
  const std::vector<std::string> names = {"ab", "ac"};
  EXPECT_EQ(nearest("a", names), "ab");
}

TEST(Nearest, NothingIsNearestToNothing) {
  EXPECT_EQ(nearest("word", {}), "");
  const std::vector<std::string> names = {"long", "of"};
  EXPECT_EQ(nearest("", names), "of");
}

}  // namespace
}  // namespace convoy
