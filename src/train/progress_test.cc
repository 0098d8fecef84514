#include "train/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace convoy {
namespace {

constexpr ProgressState kHalf = {.epoch = 2,
                                 .epochs = 3,
                                 .done = 30000,
                                 .total = 60000,
                                 .images_per_s = 1000,
                                 .loss = 0.25,
                                 .accuracy = 0.925};

TEST(Progress, BarSaysHowFarHowFastAndHowLong) {
  EXPECT_EQ(
      bar_text(kHalf, 200),
      "epoch 2/3 [==========          ]  50 %  30,000/60,000 images  1,000 images/s  loss 0.2500  "
      "accuracy 92.50 %  1:30 left");
}

TEST(Progress, BarFitsTheTerminal) {
  EXPECT_EQ(
      bar_text(kHalf, 99),
      "epoch 2/3 [==========          ]  50 %  1,000 images/s  loss 0.2500  accuracy 92.50 %  "
      "1:30 left");
  EXPECT_EQ(bar_text(kHalf, 79),
            "epoch 2/3  50 %  1,000 images/s  loss 0.2500  accuracy 92.50 %  1:30 left");
  EXPECT_EQ(bar_text(kHalf, 20), "epoch 2/3  50 %  1,0");
}

TEST(Progress, DurationsReadLikeAClock) {
  EXPECT_EQ(duration_text(0.2), "0:00");
  EXPECT_EQ(duration_text(65), "1:05");
  EXPECT_EQ(duration_text(3725), "1:02:05");
}

}  // namespace
}  // namespace convoy
