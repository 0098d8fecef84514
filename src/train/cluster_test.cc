#include "train/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ClusterFile, DescribesWorkersAndLinks) {
  const TrainingCluster found = parse_cluster(
      "images_per_s = [600, 600, 30]\ngbit_per_s = 10\nlatency_us = 20\nworkers_per_host = 2\n",
      "lab.toml");
  EXPECT_EQ(found.cluster.ranks, 3);
  EXPECT_THAT(found.images_per_s, ElementsAre(600, 600, 30));
  EXPECT_THAT(found.cluster.host_of, ElementsAre(0, 0, 1));
  EXPECT_DOUBLE_EQ(found.cluster.network.bytes_per_s, 1.25e9);
  EXPECT_DOUBLE_EQ(found.cluster.network.latency_s, 20e-6);
  EXPECT_THAT(parse_cluster("workers = 64\nimages_per_s = 5.5\n", "x").images_per_s.size(), 64u);
}

TEST(ClusterFile, IsRefusedWithPlaceAndKey) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      parse_cluster(text, "lab.toml");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of("workers = 4\n"), HasSubstr("lab.toml: images_per_s is missing"));
  EXPECT_THAT(error_of("workers = 0\nimages_per_s = 1\n"),
              HasSubstr("lab.toml:1: workers must be"));
  EXPECT_THAT(error_of("images_per_s = 1\nlatency = 3\n"), HasSubstr("did you mean latency_us?"));
  EXPECT_THAT(error_of("workers = 3\nimages_per_s = [1, 2]\n"), HasSubstr("there are 3 workers"));
  EXPECT_THAT(error_of("images_per_s = \"fast\"\n"), HasSubstr("lab.toml:1: images_per_s"));
}

}  // namespace
}  // namespace convoy
