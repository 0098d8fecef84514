#include "lab/study.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/nearest.h"
#include "lab/wang2020.h"

namespace convoy {
namespace {

constexpr int kMostNodes = 64;
constexpr int kMostWorkers = 1024;
constexpr std::int64_t kMostPerProcess = 1'000'000;
constexpr double kFastestLink = 400;
constexpr std::int64_t kQuickSamples = 6000;

const std::vector<std::string> kOwnKeys = {"study", "rows", "batch_per_process", "gbit_per_s"};
// What the rows decide.
const std::vector<std::string> kRowKeys = {"batch",   "workers", "hosts",   "transport", "out",
                                           "balance", "world",   "cluster", "invariant"};

bool among(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// The number at the beginning of `text`, which it is cut from; 0: there is none.
int take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || text.front() == '-') return 0;
  text.remove_prefix(std::size_t(end - text.data()));
  return number;
}

StudyRow parse_row(std::string_view word, const std::string& where) {
  std::string_view rest = word;
  StudyRow row;
  row.nodes = take_number(rest);
  const bool times = rest.starts_with('x');
  if (times) rest.remove_prefix(1);
  row.processes = take_number(rest);
  if (!times || !rest.empty() || row.nodes < 1 || row.processes < 1)
    throw ConfigError("{}: '{}' is no row: write nodes x processes of each, as in 1x1,2x4", where,
                      word.substr(0, 40));
  if (row.nodes > kMostNodes || row.processes > kMostWorkers || row.workers() > kMostWorkers)
    throw ConfigError("{}: '{}': at most {} nodes and {} processes in all", where, word, kMostNodes,
                      kMostWorkers);
  return row;
}

const std::string& text_of(const ConfigEntry& entry) {
  const auto* text = std::get_if<std::string>(&entry.value);
  if (!text) throw ConfigError("{}: {} must be a text in quotes", entry.place, entry.name);
  return *text;
}

std::int64_t samples_of(const ConfigEntry& entry) {
  const auto* number = std::get_if<std::int64_t>(&entry.value);
  if (!number || *number < 1 || *number > kMostPerProcess)
    throw ConfigError("{}: {} must be a whole number from 1 to {}", entry.place, entry.name,
                      kMostPerProcess);
  return *number;
}

double rate_of(const ConfigEntry& entry) {
  const auto* whole = std::get_if<std::int64_t>(&entry.value);
  const auto* real = std::get_if<double>(&entry.value);
  const double rate = whole ? double(*whole) : real ? *real : 0;
  if (!(rate >= 0.001 && rate <= kFastestLink))
    throw ConfigError("{}: {} must be a number from 0.001 to {}", entry.place, entry.name,
                      kFastestLink);
  return rate;
}

void set_training(TrainConfig& config, const ConfigEntry& entry) {
  if (among(kRowKeys, entry.name))
    throw ConfigError("{}: {} follows from the rows of a study: remove it", entry.place,
                      entry.name);
  std::vector<std::string> names = kOwnKeys;
  for (const ConfigField& field : config_fields()) {
    if (field.name == entry.name)
      return set_field(config, field, entry.value, fmt::format("{}: {}", entry.place, entry.name));
    if (!among(kRowKeys, field.name)) names.push_back(field.name);
  }
  throw ConfigError("{}: unknown key '{}': did you mean {}?", entry.place, entry.name,
                    nearest(entry.name.substr(0, 100), names));
}

void set_own(Study& study, const ConfigEntry& entry) {
  if (entry.name == "study")
    study.name = text_of(entry);
  else if (entry.name == "rows")
    study.rows = parse_rows(text_of(entry), entry.place + ": rows");
  else if (entry.name == "batch_per_process")
    study.batch_per_process = samples_of(entry);
  else
    study.gbit_per_s = rate_of(entry);
}

}  // namespace

std::string StudyRow::name() const { return fmt::format("{}x{}", nodes, processes); }

std::vector<StudyRow> parse_rows(std::string_view text, const std::string& where) {
  std::vector<StudyRow> rows;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string_view word = text.substr(begin, end - begin);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    const StudyRow row = parse_row(word, where);
    if (std::find(rows.begin(), rows.end(), row) != rows.end())
      throw ConfigError("{}: {} is given twice", where, row.name());
    rows.push_back(row);
    begin = end + 1;
  }
  return rows;
}

Study read_study(std::string_view text, const std::string& file) {
  Study study;
  for (const ConfigEntry& entry : read_entries(text, file)) {
    if (among(kOwnKeys, entry.name))
      set_own(study, entry);
    else
      set_training(study.training, entry);
  }
  if (study.name.empty())
    throw ConfigError("{}: which study? Add the line study = \"{}\"", file, kWang2020);
  if (study.name != kWang2020)
    throw ConfigError("{}: unknown study '{}': known is {}", file, study.name.substr(0, 100),
                      kWang2020);
  if (study.rows.empty())
    throw ConfigError("{}: no rows: add a line such as rows = \"1x1,1x2,2x1\"", file);
  for (const StudyRow& row : study.rows) check_config(row_config(study, row, 1));
  return study;
}

Study quick_study(Study study) {
  study.training.epochs = 1;
  study.training.warmup_epochs = 0;
  const std::int64_t limit = study.training.limit;
  study.training.limit = limit > 0 ? std::min(limit, kQuickSamples) : kQuickSamples;
  return study;
}

TrainConfig row_config(const Study& study, const StudyRow& row, int cores) {
  TrainConfig config = study.training;
  config.workers = row.workers();
  config.batch = study.batch_per_process * row.workers();
  // A node does not know that the others are the same machine.
  if (config.threads == 0) config.threads = std::max(1, cores / row.workers());
  return config;
}

}  // namespace convoy
