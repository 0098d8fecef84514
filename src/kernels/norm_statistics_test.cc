#include "kernels/norm_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace convoy {
namespace {

// The other workers, whose sums are known beforehand.
class Others : public StatisticsExchange {
 public:
  std::vector<double> values;
  void sum(std::span<double> mine) override {
    ASSERT_EQ(mine.size(), values.size());
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] += values[i];
  }
};

struct Sample {
  std::vector<double> x;
  double sum() const {
    double total = 0;
    for (double v : x) total += v;
    return total;
  }
  double squares() const {
    double total = 0;
    for (double v : x) total += v * v;
    return total;
  }
};

Sample random_sample(int size, double mean, std::uint64_t seed) {
  Rng rng(seed, Purpose::test);
  Sample sample;
  for (int i = 0; i < size; ++i) sample.x.push_back(double(float(mean + rng.normal())));
  return sample;
}

TEST(NormStatistics, MomentsOfTwoWorkersAreThoseOfAllSamples) {
  for (double mean : {0.0, 3.0, 3000.0}) {
    const Sample mine = random_sample(100, mean, 1), theirs = random_sample(37, mean + 2, 2);
    Sample all = mine;
    all.x.insert(all.x.end(), theirs.x.begin(), theirs.x.end());
    const double center = all.sum() / 137;
    double about_center = 0;
    for (double v : all.x) about_center += (v - center) * (v - center);

    Others others;
    others.values = {theirs.sum(), theirs.squares(), 37};
    NormStatistics statistics(&others, 1);
    statistics.set(0, mine.sum(), mine.squares());
    statistics.share_moments(100);
    EXPECT_EQ(statistics.count(), 137);
    EXPECT_NEAR(statistics.mean(0), center, 1e-12 * (1 + mean));
    EXPECT_NEAR(statistics.variance(0), about_center / 137, 1e-7);
    float running_mean = 1, running_variance = 2;
    statistics.update_running(0.1f, &running_mean, &running_variance);
    EXPECT_NEAR(running_mean, 0.9 + 0.1 * center, 1e-6 * (1 + mean));
    EXPECT_NEAR(running_variance, 0.9 * 2 + 0.1 * about_center / 136, 1e-6);
  }
}

TEST(NormStatistics, WithoutSamplesTheOthersCount) {
  Others others;
  others.values = {10, 30, 5};
  NormStatistics statistics(&others, 1);
  statistics.set(0, 7, 8);
  statistics.clear();
  statistics.share_moments(0);
  EXPECT_EQ(statistics.mean(0), 2);
  EXPECT_EQ(statistics.variance(0), 2);
}

TEST(NormStatistics, NobodyHadASample) {
  Others others;
  others.values = {0, 0, 0};
  NormStatistics statistics(&others, 1);
  statistics.share_moments(0);
  float mean = 1, variance = 2;
  statistics.update_running(0.1f, &mean, &variance);
  EXPECT_EQ(mean, 1);
  EXPECT_EQ(variance, 2);
}

TEST(NormStatistics, GradientSumsLeaveTheCountAlone) {
  Others others;
  others.values = {1, 2, 3, 4, 6};
  NormStatistics statistics(&others, 2);
  statistics.share_moments(4);
  others.values.resize(4);
  statistics.set(0, 10, 20);
  statistics.set(1, 30, 40);
  statistics.share_gradients();
  EXPECT_EQ(statistics.first(0), 11);
  EXPECT_EQ(statistics.first(1), 32);
  EXPECT_EQ(statistics.second(0), 23);
  EXPECT_EQ(statistics.second(1), 44);
  EXPECT_EQ(statistics.count(), 10);
}

TEST(NormStatistics, AloneNothingIsAdded) {
  NormStatistics statistics(nullptr, 1);
  statistics.set(0, 6, 20);
  statistics.share_moments(3);
  EXPECT_EQ(statistics.count(), 3);
  EXPECT_EQ(statistics.mean(0), 2);
  EXPECT_DOUBLE_EQ(statistics.variance(0), 20.0 / 3 - 4);
  statistics.set(0, 5, 6);
  statistics.share_gradients();
  EXPECT_EQ(statistics.first(0), 5);
  EXPECT_EQ(statistics.second(0), 6);
}

}  // namespace
}  // namespace convoy
