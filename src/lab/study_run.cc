#include "lab/study_run.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "lab/training_process.h"
#include "lab/virtual_hosts.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kUsage = 2;  // the exit code of wrong settings
constexpr std::size_t kMostStoredBytes = 16 << 20;

class Runner {
 public:
  Runner(const Study& study, const StudyPlace& place, SignalQueue& signals)
      : study_(study), place_(place), signals_(signals) {
    make_folder(place.folder);
    lock_ = FolderLock(place.folder);
    remove_unfinished(place.folder);
    bool several = false;
    for (const StudyRow& row : study.rows) several |= row.nodes > 1;
    if (several) refused_ = virtual_hosts_refused();
    if (!refused_.empty()) fall_back(refused_);
  }

  // Nothing: a signal stopped it.
  std::optional<Wang2020Row> row(const StudyRow& row) {
    if (std::optional<Wang2020Row> stored = load(row)) return stored;
    const fs::path folder = place_.folder / row.name();
    std::error_code ignored;
    fs::remove_all(folder, ignored);  // a run that was stopped
    make_folder(folder);
    TrainConfig config = row_config(study_, row, place_.cores);
    config.out = (folder / "run").string();
    const std::unique_ptr<VirtualHosts> hosts = make_hosts(row);
    if (hosts) {
      config.hosts = (folder / "hosts").string();
      write_file_atomically(config.hosts, hosts->hosts_file(row.processes));
    }
    write_file_atomically(folder / "train.toml", to_toml(config));
    const TrainingEnd end = run_training(
        {place_.program, "train", "--config", (folder / "train.toml").string(), "--json"},
        row.name(), signals_, place_.human);
    if (end.interrupted) return std::nullopt;
    if (end.code != 0) fail(row, end);
    const Wang2020Row done{row, wang2020_figures(end.answer, end.seconds), nodes(row)};
    store(done, end.answer);
    return done;
  }

 private:
  [[noreturn]] static void fail(const StudyRow& row, const TrainingEnd& end) {
    const std::string reason =
        end.reason.empty() ? fmt::format("convoy train ended with code {}", end.code) : end.reason;
    if (end.code == kUsage) throw ConfigError("row {}: {}", row.name(), reason);
    throw DataError("row {}: {}", row.name(), reason);
  }

  void fall_back(const std::string& why) {
    refused_ = why;
    spdlog::warn("{}: processes of this host stand for nodes", why);
  }

  std::unique_ptr<VirtualHosts> make_hosts(const StudyRow& row) {
    if (row.nodes == 1 || !refused_.empty()) return nullptr;
    try {
      return std::make_unique<VirtualHosts>(
          VirtualHostsOptions{.count = row.nodes, .gbit_per_s = study_.gbit_per_s});
    } catch (const TransportError& error) {
      fall_back(error.what());
      return nullptr;
    }
  }

  // What the nodes of a row are.
  std::string nodes(const StudyRow& row) const {
    if (row.nodes == 1) return "this host";
    if (!refused_.empty()) return "processes of this host";
    return fmt::format("namespaces, {:g} Gbit/s", study_.gbit_per_s);
  }

  // What a stored row must agree with.
  json settings(const StudyRow& row) const {
    return {{"training", to_json(row_config(study_, row, place_.cores))}, {"nodes", nodes(row)}};
  }

  fs::path file_of(const StudyRow& row) const { return place_.folder / (row.name() + ".json"); }

  void store(const Wang2020Row& done, const json& answer) const {
    const json stored = {{"study", study_.name},
                         {"row", done.row.name()},
                         {"settings", settings(done.row)},
                         {"figures", done.figures.to_json()},
                         {"total_s", done.figures.total_s},
                         {"answer", answer}};
    write_file_atomically(file_of(done.row), stored.dump(1) + "\n");
  }

  std::optional<Wang2020Row> load(const StudyRow& row) const {
    const fs::path file = file_of(row);
    if (!fs::exists(file)) return std::nullopt;
    const auto bytes = read_file(file, kMostStoredBytes);
    const json stored = json::parse(bytes.begin(), bytes.end(), nullptr, false);
    if (!stored.is_object()) return std::nullopt;
    if (stored.value("settings", json()) != settings(row) || !stored.contains("answer") ||
        !stored.value("total_s", json()).is_number())
      return std::nullopt;
    tell(place_.human, fmt::format("{}  is in {}\n", row.name(), file.string()));
    return Wang2020Row{row, wang2020_figures(stored["answer"], stored["total_s"].get<double>()),
                       nodes(row)};
  }

  const Study& study_;
  const StudyPlace& place_;
  SignalQueue& signals_;
  FolderLock lock_;
  std::string refused_;  // why nodes cannot be virtual hosts; empty: they can
};

}  // namespace

StudyResult run_study(const Study& study, const StudyPlace& place, SignalQueue& signals) {
  Runner runner(study, place, signals);
  StudyResult result;
  for (const StudyRow& row : study.rows) {
    tell(place.human,
         fmt::format("{}  row {} of {}: {} process{} on {} node{}\n", row.name(),
                     result.rows.size() + 1, study.rows.size(), row.workers(),
                     row.workers() == 1 ? "" : "es", row.nodes, row.nodes == 1 ? "" : "s"));
    std::optional<Wang2020Row> done = runner.row(row);
    if (!done) return result;
    result.rows.push_back(std::move(*done));
  }
  result.finished = true;
  return result;
}

}  // namespace convoy
