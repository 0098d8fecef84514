// "Distributed and Parallel Deep Learning: MNIST" (Wang et al., 2020): its Table 2, and the same
// figures of a training of ours.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "lab/study.h"

namespace convoy {

inline constexpr const char* kWang2020 = "wang2020";

struct Wang2020Figures {
  double read_s = 0;      // the data, by one process
  double gradient_s = 0;  // of one batch: forward and backward of one process
  double epoch_s = 0;
  double test_loss = 0;
  double test_accuracy = 0;  // 0 to 1
  double total_s = 0;

  nlohmann::json to_json() const;
};

// The study's own; null where its table has no such row.
const Wang2020Figures* wang2020_published(const StudyRow& row);

// Of a training: its answer to --json, and the seconds from its start to its end. Throws DataError
// where the answer lacks a figure.
Wang2020Figures wang2020_figures(const nlohmann::json& answer, double total_s);

struct Wang2020Row {
  StudyRow row;
  Wang2020Figures figures;
  std::string hosts;  // what the nodes are
};
// For people: ours, and the study's in brackets.
std::string wang2020_table(std::span<const Wang2020Row> rows);

}  // namespace convoy
