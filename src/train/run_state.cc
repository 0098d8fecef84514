// Run states and epoch records as JSON text, exact in every bit.
#include "base/error.h"
#include "train/records.h"
#include "train/trainer.h"

namespace convoy {

nlohmann::json history_json(const std::vector<EpochRecord>& history) {
  nlohmann::json list = nlohmann::json::array();
  for (const EpochRecord& record : history) {
    nlohmann::json row = {{"epoch", record.epoch},
                          {"train_loss", record.train_loss},
                          {"train_accuracy", record.train_accuracy},
                          {"seen", record.data.seen},
                          {"missing", record.data.missing},
                          {"twice", record.data.twice},
                          {"seconds", record.seconds}};
    if (record.test) {
      row["test_loss"] = record.test->loss;
      row["test_accuracy"] = record.test->accuracy;
      row["test_samples"] = record.test->samples;
      if (record.test->flip_accuracy) row["test_accuracy_flip"] = *record.test->flip_accuracy;
      if (record.test->shift_accuracy) row["test_accuracy_shift"] = *record.test->shift_accuracy;
    }
    list.push_back(std::move(row));
  }
  return list;
}

namespace {

std::vector<EpochRecord> history_from(const nlohmann::json& list) {
  std::vector<EpochRecord> history;
  for (const nlohmann::json& row : list) {
    EpochRecord record{
        .epoch = row.at("epoch"),
        .train_loss = row.at("train_loss"),
        .train_accuracy = row.at("train_accuracy"),
        .test = std::nullopt,
        .data = {.seen = row.at("seen"), .missing = row.at("missing"), .twice = row.at("twice")},
        .seconds = row.at("seconds")};
    if (row.contains("test_loss"))
      record.test = Score{.loss = row.at("test_loss"),
                          .accuracy = row.at("test_accuracy"),
                          .samples = row.at("test_samples")};
    if (row.contains("test_accuracy_flip"))
      record.test->flip_accuracy = row.at("test_accuracy_flip").get<double>();
    if (row.contains("test_accuracy_shift"))
      record.test->shift_accuracy = row.at("test_accuracy_shift").get<double>();
    history.push_back(record);
  }
  return history;
}

}  // namespace

std::string RunState::to_text() const {
  return nlohmann::json{{"epochs", epochs},
                        {"steps", steps},
                        {"updates", updates},
                        {"loss_sum", outcome.loss_sum},
                        {"correct", outcome.correct},
                        {"samples", outcome.samples},
                        {"seen", seen},
                        {"history", history_json(history)}}
      .dump();
}

RunState RunState::from_text(const std::string& text, const std::string& where) {
  try {
    const nlohmann::json object = nlohmann::json::parse(text);
    RunState state{.epochs = object.at("epochs"),
                   .steps = object.at("steps"),
                   .updates = object.at("updates"),
                   .outcome = {.loss_sum = object.at("loss_sum"),
                               .correct = object.at("correct"),
                               .samples = object.at("samples")},
                   .seen = object.at("seen"),
                   .history = history_from(object.at("history"))};
    if (state.epochs < 0 || state.steps < 0 || state.updates < 0)
      throw DataError("{}: its position in the run is negative", where);
    return state;
  } catch (const nlohmann::json::exception& error) {
    throw DataError("{}: its position in the run cannot be read: {}", where, error.what());
  }
}

}  // namespace convoy
