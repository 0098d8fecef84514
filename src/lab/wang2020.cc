#include "lab/wang2020.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace convoy {
namespace {

const std::pair<StudyRow, Wang2020Figures> kPublished[] = {
    {{1, 1}, {.53, .14, 142.04, .0441, .9880, 595.27}},
    {{1, 2}, {.55, .15, 82.06, .0559, .9843, 416.88}},
    {{1, 4}, {.54, .17, 34.40, .0659, .9828, 193.12}},
    {{1, 8}, {.55, .15, 20.52, .0912, .9720, 103.67}},
    {{2, 1}, {.57, .15, 81.99, .0521, .9848, 415.21}},
    {{2, 2}, {.55, .16, 41.03, .0664, .9832, 207.78}},
    {{2, 4}, {.53, .18, 20.52, .1115, .9675, 97.32}},
    {{4, 1}, {.88, .13, 41.06, .0591, .9847, 215.06}},
    {{4, 2}, {.89, .13, 20.53, .1942, .9403, 130.80}}};

// A figure of ours and theirs, with so many digits.
std::string both(double ours, const double* theirs, int digits) {
  std::string text = fmt::format("{:.{}f}", ours, digits);
  return theirs ? fmt::format("{} ({:.{}f})", text, *theirs, digits) : text;
}

}  // namespace

nlohmann::json Wang2020Figures::to_json() const {
  return {{"read_s", read_s},       {"gradient_s", gradient_s},       {"epoch_s", epoch_s},
          {"test_loss", test_loss}, {"test_accuracy", test_accuracy}, {"total_s", total_s}};
}

const Wang2020Figures* wang2020_published(const StudyRow& row) {
  for (const auto& [published, figures] : kPublished)
    if (published == row) return &figures;
  return nullptr;
}

Wang2020Figures wang2020_figures(const nlohmann::json& answer, double total_s) {
  try {
    const nlohmann::json& phases = answer.at("phases_s");
    const nlohmann::json& history = answer.at("history");
    double epochs_s = 0;
    for (const nlohmann::json& epoch : history) epochs_s += epoch.at("seconds").get<double>();
    const double steps = answer.at("steps").get<double>();
    if (history.empty() || steps < 1) throw DataError("the training took no step");
    return {.read_s = answer.at("read_s").get<double>(),
            .gradient_s =
                (phases.at("forward").get<double>() + phases.at("backward").get<double>()) / steps,
            .epoch_s = epochs_s / double(history.size()),
            .test_loss = answer.at("test_loss").get<double>(),
            .test_accuracy = answer.at("test_accuracy").get<double>(),
            .total_s = total_s};
  } catch (const nlohmann::json::exception& error) {
    throw DataError("the answer of a training lacks a figure: {}", error.what());
  }
}

std::string wang2020_table(std::span<const Wang2020Row> rows) {
  constexpr const char* kLine = "{:<10}{:>14}{:>17}{:>18}{:>18}{:>16}{:>18}  {}\n";
  std::string text = fmt::format(kLine, "nodes x", "read s", "gradient s", "epoch s", "test loss",
                                 "accuracy %", "total s", "nodes");
  text += fmt::format(kLine, "processes", "", "a batch", "", "", "", "", "");
  int known = 0, reached = 0;
  for (const Wang2020Row& row : rows) {
    const Wang2020Figures& ours = row.figures;
    const Wang2020Figures* theirs = wang2020_published(row.row);
    const auto cell = [&](double Wang2020Figures::*figure, int digits, double scale = 1) {
      const double other = theirs ? scale * theirs->*figure : 0;
      return both(scale * ours.*figure, theirs ? &other : nullptr, digits);
    };
    text += fmt::format(kLine, row.row.name(), cell(&Wang2020Figures::read_s, 2),
                        cell(&Wang2020Figures::gradient_s, 4), cell(&Wang2020Figures::epoch_s, 2),
                        cell(&Wang2020Figures::test_loss, 4),
                        cell(&Wang2020Figures::test_accuracy, 2, 100),
                        cell(&Wang2020Figures::total_s, 2), row.hosts);
    known += theirs != nullptr;
    reached += theirs && ours.test_accuracy >= theirs->test_accuracy;
  }
  return text + fmt::format(
                    "In brackets: the study's own. Accuracy is at least the study's in {} "
                    "of {} rows.\n",
                    reached, known);
}

}  // namespace convoy
