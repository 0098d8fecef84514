#include "train/data_ledger.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

const std::vector<std::uint32_t> kSome = {0, 2, 2, 4};

TEST(DataLedger, CountsSeenMissingAndTwice) {
  DataLedger ledger(5);
  ledger.add(kSome);
  EXPECT_EQ(ledger.count().to_string(), "3 seen, 2 missing, 1 twice");
  ledger.start_epoch();
  EXPECT_EQ(ledger.count().to_string(), "0 seen, 5 missing, 0 twice");
}

TEST(DataLedger, SavesAndRestoresAnUnfinishedEpoch) {
  DataLedger ledger(5), other(5);
  ledger.add(kSome);
  other.restore(ledger.save(), "file");
  EXPECT_EQ(other.count().to_string(), ledger.count().to_string());
  other.add(std::vector<std::uint32_t>{1, 3});
  EXPECT_EQ(other.count().to_string(), "5 seen, 0 missing, 1 twice");
}

TEST(DataLedger, RefusesARecordOfOtherData) {
  DataLedger ledger(5);
  EXPECT_THROW(ledger.restore("00", "file"), DataError);
  EXPECT_THROW(ledger.restore("0f0", "file"), DataError);
  EXPECT_THROW(ledger.restore("0x0", "file"), DataError);
}

TEST(WithCommas, GroupsThreeDigits) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(11689512), "11,689,512");
}

}  // namespace
}  // namespace convoy
