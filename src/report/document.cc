#include "report/document.h"

#include <algorithm>
#include <ctime>
#include <map>

#include "base/clock.h"
#include "report/accounts.h"
#include "report/columns.h"
#include "report/curves.h"
#include "train/config.h"

namespace convoy {
namespace {

std::string iso_time(double unix_s) {
  const std::time_t seconds = std::time_t(unix_s);
  std::tm parts = {};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

// What workers spend on communication and waiting, of their training, by run.
std::map<std::int64_t, double> communication_shares(Store& store, std::int64_t run) {
  Statement statement = store.database().prepare(
      "SELECT l.run, sum(iif(l.phase IN ('communication', 'wait'), l.seconds, 0)), sum(iif(l.phase "
      "IN ('evaluate', 'checkpoint'), 0, l.seconds)) FROM ledger l JOIN ranks r ON r.run = l.run "
      "AND r.rank = l.rank WHERE r.role = 'worker' AND l.epoch > 0 AND (?1 < 0 OR l.run = ?1) "
      "GROUP "
      "BY l.run");
  statement.bind(run);
  std::map<std::int64_t, double> shares;
  while (statement.next())
    if (statement.real(2) > 0) shares[statement.integer(0)] = statement.real(1) / statement.real(2);
  return shares;
}

std::map<std::int64_t, std::int64_t> finished_epochs(Store& store, std::int64_t run) {
  Statement statement = store.database().prepare(
      "SELECT run, max(epoch) FROM epochs WHERE ?1 < 0 OR run = ?1 GROUP BY run");
  statement.bind(run);
  std::map<std::int64_t, std::int64_t> epochs;
  while (statement.next()) epochs[statement.integer(0)] = statement.integer(1);
  return epochs;
}

nlohmann::json summary(const RunRow& run, std::optional<double> communication_share,
                       std::int64_t epochs_done) {
  return {{"id", std::to_string(run.id)},
          {"name", run.name},
          {"state", run_state(run)},
          {"reason", run.error},
          {"started", iso_time(run.started_unix_s)},
          {"wall_s", short_number(run.wall_s)},
          {"model", run.model},
          {"data", run.data},
          {"precision", run.precision},
          {"workers", run.workers},
          {"servers", run.servers},
          {"sync", run.sync},
          {"algorithm", run.algorithm},
          {"transport", run.transport},
          {"wire", run.wire},
          {"world", run.world},
          {"batch", run.batch},
          {"epochs", run.epochs},
          {"seed", run.seed},
          {"threads", run.threads},
          {"parameters", run.parameters},
          {"steps", run.steps},
          {"epochs_done", epochs_done},
          {"images_per_s", short_number(run.images_per_s)},
          {"test_accuracy", short_number(run.test_accuracy)},
          {"test_loss", short_number(run.test_loss)},
          {"train_loss", short_number(run.train_loss)},
          {"communication_share", short_number(communication_share)}};
}

template <typename Value>
std::optional<Value> value_of(const std::map<std::int64_t, Value>& values, std::int64_t run) {
  const auto found = values.find(run);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

// The settings that somebody chose: those that differ from what they are by default.
nlohmann::json chosen_settings(const nlohmann::json& configuration) {
  const nlohmann::json defaults = to_json(TrainConfig{});
  nlohmann::json names = nlohmann::json::array();
  if (configuration.is_object())
    for (const auto& [name, value] : configuration.items())
      if (!defaults.contains(name) || defaults[name] != value) names.push_back(name);
  return names;
}

nlohmann::json data_seen(Store& store, std::int64_t run) {
  Statement statement = store.database().prepare(
      "SELECT seen, missing, twice FROM epochs WHERE run = ?1 ORDER BY epoch DESC LIMIT 1");
  statement.bind(run);
  if (!statement.next()) return nullptr;
  return {{"seen", statement.integer(0)},
          {"missing", statement.integer(1)},
          {"twice", statement.integer(2)}};
}

nlohmann::json object_or_empty(const nlohmann::json& value) {
  return value.is_object() ? value : nlohmann::json::object();
}

}  // namespace

std::vector<nlohmann::json> run_summaries(Store& store, const RunFilter& filter) {
  const auto shares = communication_shares(store, -1);
  const auto epochs = finished_epochs(store, -1);
  std::vector<nlohmann::json> list;
  for (const RunRow& run : store.list(filter))
    list.push_back(summary(run, value_of(shares, run.id), value_of(epochs, run.id).value_or(0)));
  return list;
}

nlohmann::json run_summary(Store& store, const RunRow& run) {
  return summary(run, value_of(communication_shares(store, run.id), run.id),
                 value_of(finished_epochs(store, run.id), run.id).value_or(0));
}

nlohmann::json run_document(Store& store, const RunRow& run, double detail) {
  const auto rows = [&](int at_best) { return std::size_t(std::max(2.0, at_best * detail)); };
  const std::int64_t id = run.id;
  nlohmann::json document = run_summary(store, run);
  document["verdict"] = run.verdict;
  document["data_seen"] = data_seen(store, id);
  document["steps_table"] = step_columns(store, id, rows(500));
  document["epochs_table"] = epoch_columns(store, id);
  document["phases"] = stacked_phases();
  document["ranks"] = rank_accounts(store, id, rows(2048));
  document["timeline"] = step_timeline(store, id, rows(4000));
  document["staleness"] = staleness_account(store, id);
  document["idleness"] = idleness(store, id);
  document["resources"] = resource_series(store, id, rows(300));
  document["traffic"] = traffic_series(store, id, rows(300));
  document["latencies"] = latencies(store, id);
  document["happenings"] = happenings(store, id, rows(200));
  document["layers"] = layer_accounts(store, id);
  const nlohmann::json result = object_or_empty(run.result);
  document["weights_sha256"] = result.value("weights_sha256", "");
  document["configuration"] = object_or_empty(run.configuration);
  document["configuration_given"] = chosen_settings(run.configuration);
  document["environment"] = object_or_empty(run.environment);
  return document;
}

nlohmann::json report_document(Store& store, std::span<const RunRow> runs, double detail) {
  nlohmann::json list = nlohmann::json::array();
  for (const RunRow& run : runs) list.push_back(run_document(store, run, detail));
  return {{"format", kDocumentFormat},
          {"generated", iso_time(unix_time_s())},
          {"program", "convoy " CONVOY_VERSION},
          {"runs", std::move(list)}};
}

}  // namespace convoy
