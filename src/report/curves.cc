#include "report/curves.h"

#include <algorithm>
#include <limits>
#include <set>

#include "report/columns.h"

namespace convoy {
namespace {

// One step, of all workers that made it.
struct Step {
  std::int64_t number = 0;
  double begin_s = 0;
  double seconds = 0;  // of all workers, added up
  double loss_sum = 0;
  std::int64_t loss_samples = 0;  // whose loss is known
  std::int64_t samples = 0, correct = 0;

  void add(const Step& other) {
    begin_s = std::min(begin_s, other.begin_s);
    seconds += other.seconds;
    loss_sum += other.loss_sum;
    loss_samples += other.loss_samples;
    samples += other.samples;
    correct += other.correct;
  }
  std::optional<double> loss() const {
    return loss_samples > 0 ? std::optional(loss_sum / double(loss_samples)) : std::nullopt;
  }
  std::optional<double> images_per_s(std::size_t workers) const {
    return seconds > 0 ? std::optional(double(samples) / seconds * double(workers)) : std::nullopt;
  }
};

struct Steps {
  std::vector<Step> steps;  // by number
  std::size_t workers = 0;
};

Steps read_steps(Store& store, std::int64_t run) {
  Statement statement = store.database().prepare(
      "SELECT step, begin_ns, load_ns + forward_ns + backward_ns + communication_ns + wait_ns + "
      "update_ns + other_ns, samples, correct, loss, rank FROM steps WHERE run = ?1");
  statement.bind(run);
  Steps result;
  std::set<std::int64_t> ranks;
  std::vector<Step> all;
  while (statement.next()) {
    Step step{.number = statement.integer(0),
              .begin_s = 1e-9 * statement.real(1),
              .seconds = 1e-9 * statement.real(2),
              .samples = statement.integer(3),
              .correct = statement.integer(4)};
    if (!statement.is_null(5)) {
      step.loss_sum = statement.real(5) * double(step.samples);
      step.loss_samples = step.samples;
    }
    ranks.insert(statement.integer(6));
    all.push_back(step);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Step& a, const Step& b) { return a.number < b.number; });
  for (const Step& step : all)
    if (!result.steps.empty() && result.steps.back().number == step.number)
      result.steps.back().add(step);
    else
      result.steps.push_back(step);
  result.workers = ranks.size();
  return result;
}

struct Extremes {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(const std::optional<double>& value) {
    if (!value) return;
    low = std::min(low, *value);
    high = std::max(high, *value);
  }
};

// The differences of counters between two samples, for one series of a chart.
struct Sample {
  double at_s = 0;
  std::vector<double> counters;
  std::vector<double> levels;  // values of the moment
};

// Which rows of `rows` a table of `most` shows: every n-th and the last, so that rates are means
// over all that lies between.
std::vector<Sample> thinned(std::vector<Sample> samples, std::size_t most) {
  if (samples.size() <= most || most < 2) return samples;
  std::vector<Sample> kept;
  for (std::size_t i = 0; i < most; ++i)
    kept.push_back(samples[i * (samples.size() - 1) / (most - 1)]);
  return kept;
}

void add_rates(Columns& columns, const std::vector<Sample>& samples) {
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const Sample &from = samples[i - 1], &to = samples[i];
    const double seconds = to.at_s - from.at_s;
    std::vector<nlohmann::json> row = {short_number(to.at_s)};
    for (std::size_t c = 0; c < to.counters.size(); ++c) {
      // A resumed run's counters begin anew.
      const double growth = to.counters[c] - from.counters[c];
      row.push_back(seconds > 0 && growth >= 0 ? short_number(growth / seconds) : nullptr);
    }
    for (const double level : to.levels) row.push_back(short_number(level));
    columns.add(std::move(row));
  }
}

// Reads a statement whose columns are a rank, a time, `counters` counters and some levels, ordered
// by rank and time. Calls `use` with each rank's samples.
template <typename Use>
void each_rank(Statement& statement, int counters, const Use& use) {
  std::int64_t rank = -1;
  std::vector<Sample> samples;
  const auto finish = [&] {
    if (!samples.empty()) use(rank, std::move(samples));
    samples.clear();
  };
  int ranks = 0;
  while (statement.next()) {
    if (statement.integer(0) != rank) {
      finish();
      rank = statement.integer(0);
      if (++ranks > kMostCurves) return;
    }
    Sample sample{.at_s = statement.real(1), .counters = {}, .levels = {}};
    for (int i = 2; i < statement.columns(); ++i)
      (i - 2 < counters ? sample.counters : sample.levels).push_back(statement.real(i));
    samples.push_back(std::move(sample));
  }
  finish();
}

}  // namespace

nlohmann::json step_columns(Store& store, std::int64_t run, std::size_t most) {
  const auto [steps, workers] = read_steps(store, run);
  Columns columns({"step", "t_s", "loss", "loss_min", "loss_max", "accuracy", "images_per_s",
                   "images_per_s_min", "images_per_s_max"});
  for (std::size_t i = 0; i < steps.size();) {
    const std::size_t place = place_of(i, steps.size(), most);
    Step row = steps[i];
    Extremes loss, speed;
    for (; i < steps.size() && place_of(i, steps.size(), most) == place; ++i) {
      loss.add(steps[i].loss());
      speed.add(steps[i].images_per_s(workers));
      if (steps[i].number != row.number) row.add(steps[i]);
    }
    columns.add(
        {steps[i - 1].number, short_number(steps[i - 1].begin_s), short_number(row.loss()),
         short_number(loss.low), short_number(loss.high),
         row.samples > 0 ? short_number(double(row.correct) / double(row.samples)) : nullptr,
         short_number(row.images_per_s(workers)), short_number(speed.low),
         short_number(speed.high)});
  }
  return columns.json();
}

nlohmann::json epoch_columns(Store& store, std::int64_t run) {
  Statement statement = store.database().prepare(
      "SELECT epoch, sum(steps) OVER (ORDER BY epoch), end_s, seconds, train_loss, train_accuracy, "
      "test_loss, test_accuracy FROM epochs WHERE run = ?1 ORDER BY epoch");
  statement.bind(run);
  Columns columns({"epoch", "step", "t_s", "seconds", "train_loss", "train_accuracy", "test_loss",
                   "test_accuracy"});
  while (statement.next()) {
    std::vector<nlohmann::json> row = {statement.integer(0), statement.integer(1)};
    for (int i = 2; i < 8; ++i) row.push_back(short_number(statement.maybe_real(i)));
    columns.add(std::move(row));
  }
  return columns.json();
}

nlohmann::json resource_series(Store& store, std::int64_t run, std::size_t most) {
  Statement statement = store.database().prepare(
      "SELECT rank, at_s, cpu_s, host_cpu_s, read_bytes, write_bytes, switches + forced_switches, "
      "sent_bytes, received_bytes, sent_packets, received_packets, memory_bytes, host_cores FROM "
      "resources WHERE run = ?1 ORDER BY rank, at_s");
  statement.bind(run);
  Statement host = store.database().prepare("SELECT host FROM ranks WHERE run = ?1 AND rank = ?2");
  nlohmann::json list = nlohmann::json::array();
  each_rank(statement, 9, [&](std::int64_t rank, std::vector<Sample> samples) {
    Columns columns({"t_s", "cpu", "host_cpu", "read_bytes_s", "written_bytes_s", "switches_s",
                     "network_sent_bytes_s", "network_received_bytes_s", "network_sent_packets_s",
                     "network_received_packets_s", "memory_bytes", "cores_each"});
    const double cores = samples.back().levels.back();
    add_rates(columns, thinned(std::move(samples), most));
    nlohmann::json one = columns.json();
    one.erase("cores_each");
    one["rank"] = rank;
    one["cores"] = short_number(cores);
    host.bind(run, rank);
    one["host"] = host.next() ? host.text(0) : "";
    list.push_back(std::move(one));
  });
  return list;
}

nlohmann::json traffic_series(Store& store, std::int64_t run, std::size_t most) {
  Statement statement = store.database().prepare(
      "SELECT rank, at_s, sum(sent_bytes), sum(received_bytes), sum(sent_messages), "
      "sum(received_messages) FROM traffic WHERE run = ?1 GROUP BY rank, at_s ORDER BY rank, at_s");
  statement.bind(run);
  nlohmann::json list = nlohmann::json::array();
  each_rank(statement, 4, [&](std::int64_t rank, std::vector<Sample> samples) {
    Columns columns(
        {"t_s", "sent_bytes_s", "received_bytes_s", "sent_messages_s", "received_messages_s"});
    add_rates(columns, thinned(std::move(samples), most));
    nlohmann::json one = columns.json();
    one["rank"] = rank;
    list.push_back(std::move(one));
  });
  return list;
}

}  // namespace convoy
