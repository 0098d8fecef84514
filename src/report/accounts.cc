#include "report/accounts.h"

#include <algorithm>
#include <map>

#include "measure/phase.h"
#include "report/columns.h"

namespace convoy {
namespace {

constexpr int kMostWaits = 8;          // of a rank
constexpr int kMostTimelineRanks = 8;  // a screen's height

Statement prepared(Store& store, std::int64_t run, std::string_view sql) {
  Statement statement = store.database().prepare(sql);
  statement.bind(run);
  return statement;
}

// For whom each rank waited, longest first.
std::map<std::int64_t, nlohmann::json> waits_by_rank(Store& store, std::int64_t run) {
  Statement statement = prepared(
      store, run,
      "SELECT w.rank, w.for_rank, sum(w.seconds) AS total, sum(w.count), coalesce(l.name, '') FROM "
      "waits w LEFT JOIN layers l ON l.run = w.run AND l.node = w.node WHERE w.run = ?1 GROUP BY "
      "w.rank, w.for_rank, w.node ORDER BY w.rank, total DESC");
  std::map<std::int64_t, nlohmann::json> waits;
  while (statement.next()) {
    nlohmann::json& list =
        waits.try_emplace(statement.integer(0), nlohmann::json::array()).first->second;
    if (list.size() < kMostWaits)
      list.push_back({{"rank", statement.integer(1)},
                      {"seconds", short_number(statement.real(2))},
                      {"count", statement.integer(3)},
                      {"layer", statement.text(4)}});
  }
  return waits;
}

std::map<std::int64_t, std::vector<double>> phases_by_rank(Store& store, std::int64_t run) {
  Statement statement =
      prepared(store, run,
               "SELECT rank, phase, sum(seconds) FROM ledger WHERE run = ?1 GROUP BY rank, phase");
  const std::vector<std::string>& names = stacked_phases();
  std::map<std::int64_t, std::vector<double>> phases;
  while (statement.next()) {
    auto& seconds = phases.try_emplace(statement.integer(0), names.size()).first->second;
    const auto found = std::find(names.begin(), names.end(), statement.text(1));
    // A phase of a later version counts as other, so that the sum stays whole.
    seconds[std::min(std::size_t(found - names.begin()), names.size() - 1)] += statement.real(2);
  }
  return phases;
}

// Of the sampled steps that the most ranks have recorded, the one of median length. The first few,
// in which everything happens for the first time, count only where there are no others.
std::optional<std::int64_t> typical_step(Store& store, std::int64_t run) {
  Statement statement =
      prepared(store, run,
               "SELECT step, max(end_ns) - min(begin_ns) AS length, count(DISTINCT rank) AS ranks "
               "FROM spans "
               "WHERE run = ?1 GROUP BY step ORDER BY step > 3 DESC, ranks DESC, length");
  std::vector<std::int64_t> steps;
  bool late = false;
  std::int64_t ranks = 0;
  while (statement.next()) {
    const bool is_late = statement.integer(0) > 3;
    if (!steps.empty() && (is_late != late || statement.integer(2) != ranks)) break;
    late = is_late;
    ranks = statement.integer(2);
    steps.push_back(statement.integer(0));
  }
  return steps.empty() ? std::nullopt : std::optional(steps[steps.size() / 2]);
}

}  // namespace

const std::vector<std::string>& stacked_phases() {
  static const std::vector<std::string> names(kPhaseNames.begin(), kPhaseNames.end());
  return names;
}

nlohmann::json rank_accounts(Store& store, std::int64_t run, std::size_t most) {
  const auto waits = waits_by_rank(store, run);
  const auto phases = phases_by_rank(store, run);
  Statement statement =
      prepared(store, run, "SELECT rank, role, host FROM ranks WHERE run = ?1 ORDER BY rank");
  nlohmann::json list = nlohmann::json::array();
  while (list.size() < most && statement.next()) {
    const std::int64_t rank = statement.integer(0);
    const auto own = phases.find(rank);
    if (own == phases.end()) continue;
    nlohmann::json seconds = nlohmann::json::array();
    double wall_s = 0;
    for (const double one : own->second) {
      seconds.push_back(short_number(one));
      wall_s += one;
    }
    const auto waited = waits.find(rank);
    list.push_back({{"rank", rank},
                    {"role", statement.text(1)},
                    {"host", statement.text(2)},
                    {"wall_s", short_number(wall_s)},
                    {"phases_s", std::move(seconds)},
                    {"waits", waited == waits.end() ? nlohmann::json::array() : waited->second}});
  }
  return list;
}

nlohmann::json layer_accounts(Store& store, std::int64_t run) {
  Statement statement = prepared(
      store, run,
      "SELECT l.name, l.kind, l.output, l.parameters, t.forward, t.backward, w.seconds FROM layers "
      "l LEFT JOIN (SELECT node, 1000 * sum(forward_s) / sum(steps) AS forward, 1000 * "
      "sum(backward_s) / sum(steps) AS backward FROM layer_times WHERE run = ?1 AND steps > 0 "
      "GROUP "
      "BY node) t ON t.node = l.node LEFT JOIN (SELECT node, 1000 * sum(seconds) / (SELECT "
      "count(*) "
      "FROM steps WHERE run = ?1) AS seconds FROM waits WHERE run = ?1 GROUP BY node) w ON w.node "
      "= "
      "l.node WHERE l.run = ?1 ORDER BY l.node");
  nlohmann::json list = nlohmann::json::array();
  while (statement.next())
    list.push_back({{"name", statement.text(0)},
                    {"kind", statement.text(1)},
                    {"output", statement.text(2)},
                    {"parameters", statement.integer(3)},
                    {"forward_ms", short_number(statement.maybe_real(4))},
                    {"backward_ms", short_number(statement.maybe_real(5))},
                    {"wait_ms", short_number(statement.maybe_real(6))}});
  return list;
}

nlohmann::json step_timeline(Store& store, std::int64_t run, std::size_t most) {
  const std::optional<std::int64_t> step = typical_step(store, run);
  if (!step) return nullptr;
  Statement statement = store.database().prepare(
      "SELECT s.rank, s.lane, s.name || coalesce(' ' || l.name, ''), s.begin_ns, s.end_ns, "
      "s.bytes, "
      "s.peer FROM spans s LEFT JOIN layers l ON l.run = s.run AND l.node = s.node WHERE s.run = "
      "?1 "
      "AND s.step = ?2 AND s.rank IN (SELECT rank FROM spans WHERE run = ?1 AND step = ?2 GROUP BY "
      "rank ORDER BY rank LIMIT ?3) ORDER BY s.begin_ns");
  statement.bind(run, *step, kMostTimelineRanks);
  nlohmann::json spans = nlohmann::json::array();
  double begin_ns = 0, length_ms = 0;
  while (spans.size() < most && statement.next()) {
    if (spans.empty()) begin_ns = statement.real(3);
    const double start_ms = 1e-6 * (statement.real(3) - begin_ns);
    const double ms = 1e-6 * (statement.real(4) - statement.real(3));
    length_ms = std::max(length_ms, start_ms + ms);
    spans.push_back(
        {{"rank", statement.integer(0)},
         {"lane", statement.text(1)},
         {"name", statement.text(2)},
         {"start_ms", short_number(start_ms)},
         {"ms", short_number(ms)},
         {"bytes", statement.is_null(5) ? nlohmann::json() : nlohmann::json(statement.integer(5))},
         {"peer", statement.is_null(6) ? nlohmann::json() : nlohmann::json(statement.integer(6))}});
  }
  return {{"step", *step}, {"length_ms", short_number(length_ms)}, {"spans", std::move(spans)}};
}

nlohmann::json staleness_account(Store& store, std::int64_t run) {
  Statement by_epoch = prepared(store, run,
                                "SELECT epoch, 1.0 * sum(behind * count) / sum(count), max(behind) "
                                "FROM staleness WHERE run = ?1 AND count > 0 GROUP BY epoch");
  Columns columns({"epoch", "mean", "max"});
  while (by_epoch.next())
    columns.add({by_epoch.integer(0), short_number(by_epoch.real(1)), by_epoch.integer(2)});
  nlohmann::json account = columns.json();
  if (account["epoch"].empty()) return nullptr;
  constexpr std::int64_t kMostBehind = 63;  // what lies beyond counts there
  std::vector<std::int64_t> counts;
  Statement by_age = prepared(
      store, run,
      "SELECT behind, sum(count) FROM staleness WHERE run = ?1 AND behind >= 0 GROUP BY behind");
  while (by_age.next()) {
    const std::size_t behind = std::size_t(std::min(by_age.integer(0), kMostBehind));
    if (counts.size() <= behind) counts.resize(behind + 1);
    counts[behind] += by_age.integer(1);
  }
  account["counts"] = counts;
  return account;
}

nlohmann::json idleness(Store& store, std::int64_t run) {
  Statement statement = prepared(
      store, run,
      "SELECT l.rank, l.epoch, sum(iif(l.phase IN ('communication', 'wait'), l.seconds, 0)), "
      "sum(iif(l.phase IN ('evaluate', 'checkpoint'), 0, l.seconds)) FROM ledger l JOIN ranks r ON "
      "r.run = l.run AND r.rank = l.rank WHERE l.run = ?1 AND l.epoch > 0 AND r.role = 'worker' "
      "GROUP BY l.rank, l.epoch ORDER BY l.rank, l.epoch");
  nlohmann::json list = nlohmann::json::array();
  bool any = false;
  while (statement.next()) {
    const std::int64_t rank = statement.integer(0);
    if (list.empty() || list.back()["rank"] != rank)
      list.push_back(
          {{"rank", rank}, {"epoch", nlohmann::json::array()}, {"share", nlohmann::json::array()}});
    const double all = statement.real(3);
    any = any || statement.real(2) > 0;
    list.back()["epoch"].push_back(statement.integer(1));
    list.back()["share"].push_back(all > 0 ? short_number(statement.real(2) / all) : nullptr);
  }
  return any ? list : nlohmann::json::array();
}

nlohmann::json latencies(Store& store, std::int64_t run) {
  Statement statement =
      prepared(store, run,
               "SELECT operation, sum(count), sum(sum_s) / sum(count), min(least_s), max(most_s), "
               "sum(bytes) "
               "FROM latencies WHERE run = ?1 AND count > 0 GROUP BY operation ORDER BY operation");
  nlohmann::json list = nlohmann::json::array();
  while (statement.next())
    list.push_back({{"operation", statement.text(0)},
                    {"count", statement.integer(1)},
                    {"mean_s", short_number(statement.real(2))},
                    {"least_s", short_number(statement.real(3))},
                    {"most_s", short_number(statement.real(4))},
                    {"bytes", statement.integer(5)}});
  return list;
}

nlohmann::json happenings(Store& store, std::int64_t run, std::size_t most) {
  Statement statement = store.database().prepare(
      "SELECT at_s, rank, kind, text FROM events WHERE run = ?1 ORDER BY number LIMIT ?2");
  statement.bind(run, std::int64_t(most));
  nlohmann::json list = nlohmann::json::array();
  while (statement.next())
    list.push_back({{"t_s", short_number(statement.real(0))},
                    {"rank", statement.integer(1)},
                    {"kind", statement.text(2)},
                    {"text", statement.text(3)}});
  return list;
}

}  // namespace convoy
