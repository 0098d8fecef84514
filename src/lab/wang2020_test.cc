#include "lab/wang2020.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

nlohmann::json some_answer() {
  return nlohmann::json::parse(
      R"({"read_s": 0.25, "steps": 100, "test_loss": 0.03, "test_accuracy": 0.985,
          "phases_s": {"forward": 2, "backward": 3, "wait": 7},
          "history": [{"seconds": 4}, {"seconds": 6}]})");
}

TEST(Wang2020, FiguresOfAnAnswer) {
  const Wang2020Figures figures = wang2020_figures(some_answer(), 12);
  EXPECT_DOUBLE_EQ(figures.read_s, 0.25);
  EXPECT_DOUBLE_EQ(figures.gradient_s, 0.05);
  EXPECT_DOUBLE_EQ(figures.epoch_s, 5);
  EXPECT_DOUBLE_EQ(figures.test_loss, 0.03);
  EXPECT_DOUBLE_EQ(figures.test_accuracy, 0.985);
  EXPECT_DOUBLE_EQ(figures.total_s, 12);
}

TEST(Wang2020, AnAnswerThatLacksFiguresIsRefused) {
  for (const char* name : {"read_s", "steps", "test_accuracy", "phases_s", "history"}) {
    nlohmann::json answer = some_answer();
    answer.erase(name);
    EXPECT_THROW(wang2020_figures(answer, 1), DataError) << name;
  }
  nlohmann::json answer = some_answer();
  answer["test_loss"] = nullptr;
  EXPECT_THROW(wang2020_figures(answer, 1), DataError);
  answer = some_answer();
  answer["history"] = nlohmann::json::array();
  EXPECT_THROW(wang2020_figures(answer, 1), DataError);
}

TEST(Wang2020, TheTablePutsTheirFiguresBesideOurs) {
  ASSERT_NE(wang2020_published({2, 4}), nullptr);
  EXPECT_DOUBLE_EQ(wang2020_published({2, 4})->test_accuracy, 0.9675);
  EXPECT_EQ(wang2020_published({3, 1}), nullptr);
  const Wang2020Figures figures = wang2020_figures(some_answer(), 12);
  const std::string table = wang2020_table(std::vector<Wang2020Row>{
      {{1, 2}, figures, "here"}, {{1, 1}, figures, "here"}, {{3, 1}, figures, "there"}});
  EXPECT_THAT(table, HasSubstr("98.50 (98.43)"));
  EXPECT_THAT(table, HasSubstr("0.0500 (0.1500)"));
  EXPECT_THAT(table, HasSubstr("5.00 (142.04)"));
  EXPECT_THAT(table, HasSubstr("  there\n"));
  // 98.5 is more than 98.43 and less than 98.80; the study has no row 3x1.
  EXPECT_THAT(table, HasSubstr("at least the study's in 1 of 2 rows"));
}

}  // namespace
}  // namespace convoy
