// A study as its file describes it: one training, repeated on different numbers of nodes and
// processes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/config.h"

namespace convoy {

struct StudyRow {
  int nodes = 1;
  int processes = 1;  // of each node

  int workers() const { return nodes * processes; }
  std::string name() const;  // "2x4"
  bool operator==(const StudyRow&) const = default;
};

struct Study {
  std::string name;
  std::vector<StudyRow> rows;
  std::int64_t batch_per_process = 128;
  double gbit_per_s = 1;  // of a node's link
  TrainConfig training;   // what the rows have in common
};

// "1x1,2x4": nodes x processes of each. Throws ConfigError that begins with `where`.
std::vector<StudyRow> parse_rows(std::string_view text, const std::string& where);

// Pure: any text gives a study or a ConfigError that names `file`, line and key.
Study read_study(std::string_view text, const std::string& file);

// A trial of the study in a few seconds a row: one epoch of the first samples.
Study quick_study(Study study);

// What the row trains. `cores` are those of this machine, shared by all nodes.
TrainConfig row_config(const Study& study, const StudyRow& row, int cores);

}  // namespace convoy
