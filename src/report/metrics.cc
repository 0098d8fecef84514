#include "report/metrics.h"

#include <map>

namespace convoy {
namespace {

// A label's value: backslash, quote and line end are escaped.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : text)
    if (letter == '\\' || letter == '"')
      result += fmt::format("\\{}", letter);
    else if (letter == '\n')
      result += "\\n";
    else
      result += letter;
  return result;
}

class Metrics {
 public:
  void add(const char* name, const char* kind, const char* help, const std::string& labels,
           std::optional<double> value) {
    if (!value) return;
    std::string& lines = lines_[name];
    if (lines.empty()) lines = fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, kind);
    lines += fmt::format("{}{{{}}} {:.10g}\n", name, labels, *value);
  }
  std::string text() const {
    std::string all;
    for (const auto& [name, lines] : lines_) all += lines;
    return all;
  }

 private:
  std::map<std::string, std::string> lines_;  // by name: all values of one stand together
};

void add_ledger(Metrics& metrics, Store& store, const RunRow& run, const std::string& labels) {
  Statement statement = store.database().prepare(
      "SELECT rank, phase, sum(seconds) FROM ledger WHERE run = ?1 GROUP BY rank, phase");
  statement.bind(run.id);
  while (statement.next())
    metrics.add("convoy_phase_seconds_total", "counter", "Time of a rank by phase.",
                fmt::format("{},rank=\"{}\",phase=\"{}\"", labels, statement.integer(0),
                            escaped(statement.text(1))),
                statement.real(2));
}

void add_resources(Metrics& metrics, Store& store, const RunRow& run, const std::string& labels) {
  Statement statement = store.database().prepare(
      "SELECT rank, max(at_s), cpu_s, memory_bytes FROM resources WHERE run = ?1 GROUP BY rank");
  statement.bind(run.id);
  while (statement.next()) {
    const std::string own = fmt::format("{},rank=\"{}\"", labels, statement.integer(0));
    metrics.add("convoy_cpu_seconds_total", "counter", "Processor time of a process.", own,
                statement.real(2));
    metrics.add("convoy_memory_bytes", "gauge", "Resident memory of a process.", own,
                statement.real(3));
  }
}

}  // namespace

std::string prometheus_text(Store& store) {
  Metrics metrics;
  std::map<std::string, int> states;
  for (const char* state : {"running", "finished", "interrupted", "failed", "lost"})
    states[state] = 0;
  for (const RunRow& run : store.list()) {
    const std::string state = run_state(run);
    ++states[state];
    if (state != "running") continue;
    const std::string labels = fmt::format("run=\"{}\",model=\"{}\",data=\"{}\"", escaped(run.name),
                                           escaped(run.model), escaped(run.data));
    metrics.add("convoy_steps_total", "counter", "Training steps.", labels, double(run.steps));
    metrics.add("convoy_wall_seconds", "gauge", "Time since the start.", labels, run.wall_s);
    metrics.add("convoy_workers", "gauge", "Workers.", labels, double(run.workers));
    metrics.add("convoy_images_per_second", "gauge", "Speed of training.", labels,
                run.images_per_s);
    metrics.add("convoy_train_loss", "gauge", "Of the last epoch.", labels, run.train_loss);
    metrics.add("convoy_test_loss", "gauge", "Of the last evaluation.", labels, run.test_loss);
    metrics.add("convoy_test_accuracy", "gauge", "Of the last evaluation, 0 to 1.", labels,
                run.test_accuracy);
    add_ledger(metrics, store, run, labels);
    add_resources(metrics, store, run, labels);
  }
  for (const auto& [state, count] : states)
    metrics.add("convoy_runs", "gauge", "Runs in the store.",
                fmt::format("state=\"{}\"", escaped(state)), double(count));
  return metrics.text();
}

}  // namespace convoy
