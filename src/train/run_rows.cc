#include "train/run_rows.h"

#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "kernels/parallel.h"
#include "measure/trace.h"
#include "train/records.h"

namespace convoy {
namespace {

using nlohmann::json;

RunRow describe(const RunParts& parts) {
  const TrainConfig& config = parts.config;
  RunRow run;
  run.name = parts.folder.filename().string();
  run.started_unix_s = run.written_unix_s = unix_time_s();
  run.folder = std::filesystem::absolute(parts.folder).string();
  run.host = host_name();
  run.pid = ::getpid();
  run.model = config.model;
  run.data = config.data;
  run.precision = precision_name(parts.model->options().precision);
  run.sync = config.sync;
  run.algorithm = config.algorithm;
  run.wire = config.wire;
  run.transport = config.world == "sim" ? "sim" : parts.transport;
  run.world = config.world;
  run.batch = config.batch;
  run.epochs = config.epochs;
  run.seed = config.seed;
  run.workers = parts.workers->size();
  run.servers = config.servers;
  run.threads = threads();
  run.parameters = std::int64_t(parts.model->network().parameter_count());
  run.train_samples = std::int64_t(parts.data->train->whole_size());
  run.configuration = to_json(config);
  run.environment = environment_json(threads());
  return run;
}

void record_layers(Recording& recording, const Network& network) {
  std::vector<std::size_t> counts(network.nodes().size());
  for (const ParameterSpec& spec : network.parameters())
    counts[std::size_t(spec.node)] += spec.count();
  // A copy: the row is written later.
  recording.change([network, counts](Database& database, std::int64_t run) {
    Statement row = database.prepare("INSERT OR REPLACE INTO layers VALUES (?1,?2,?3,?4,?5,?6,?7)");
    for (const Node& node : network.nodes())
      row.bind(run, node.id, node.name, layer_kind(node.layer), node.shape.to_string(),
               counts[std::size_t(node.id)], node.id == 0 ? 0.0 : network.forward_flops(node))
          .run();
  });
}

void record_ranks(Recording& recording, const std::vector<json>& ranks) {
  recording.change([ranks](Database& database, std::int64_t run) {
    Statement row = database.prepare(
        "INSERT INTO ranks (run, rank, role, host, pid, threads) VALUES (?1, ?2, 'worker', ?3, ?4, "
        "?5) ON CONFLICT (run, rank) DO UPDATE SET host = excluded.host, pid = excluded.pid, "
        "threads = excluded.threads");
    for (std::size_t i = 0; i < ranks.size(); ++i)
      row.bind(run, i, ranks[i].at("host").get<std::string>(), ranks[i].at("pid").get<int>(),
               ranks[i].at("threads").get<int>())
          .run();
  });
}

}  // namespace

RunEntry enter_run(RunParts& parts, TimeLedger& time, CountedTransport& traffic,
                   StoreWriter* writer, bool resumed) {
  Workers& workers = *parts.workers;
  json entry = nullptr;
  // First what may be refused: a run that was entered has begun.
  auto logs = workers.leads()
                  ? std::make_unique<RunLogs>(parts.config, parts.data->train->whole_size(),
                                              parts.data->test->whole_size())
                  : nullptr;
  if (workers.leads() && writer && store_path(parts.config) != "none") {
    const std::filesystem::path store = std::filesystem::absolute(store_path(parts.config));
    const StoreWriter::Position position{parts.state.updates, parts.state.epochs};
    const auto begun = writer->begin(store, describe(parts), resumed ? &position : nullptr);
    entry = {{"store", store.string()}, {"identity", file_identity(store)},
             {"run", begun.run},        {"name", begun.name},
             {"base_s", begun.wall_s},  {"start_s", time.start_s()}};
  }
  if (workers.size() > 1) entry = json::parse(workers.spread(entry.dump()));
  if (entry.is_null())
    return {"", std::make_unique<Recording>(workers, time, nullptr, RecordingOptions{}),
            std::move(logs)};
  const bool writes =
      writer && writer->join(entry.at("store").get<std::string>(),
                             entry.at("identity").get<std::string>(), entry.at("run"));
  const json own = {
      {"host", host_name()}, {"pid", ::getpid()}, {"threads", threads()}, {"writes", writes}};
  std::vector<json> ranks;
  RecordingOptions options{
      .traffic = &traffic, .base_s = entry.at("base_s"), .start_s = entry.at("start_s")};
  for (const std::string& text : workers.gather(own.dump())) {
    ranks.push_back(json::parse(text));
    if (!ranks.back().at("writes").get<bool>()) options.far.insert(int(ranks.size()) - 1);
  }
  options.detailed = !parts.config.trace.empty();
  // Of the ranks in one process, the first one speaks for it.
  const auto same = [&](const json& rank) {
    return rank.at("host") == own.at("host") && rank.at("pid") == own.at("pid");
  };
  options.samples_resources =
      parts.config.world == "real" &&
      std::find_if(ranks.begin(), ranks.end(), same) - ranks.begin() == workers.rank();
  auto recording = std::make_unique<Recording>(workers, time, writes ? writer : nullptr, options);
  record_ranks(*recording, ranks);
  record_layers(*recording, parts.model->network());
  if (resumed) recording->event("resumed", parts.start_name);
  return {entry.at("name"), std::move(recording), std::move(logs)};
}

void write_trace(const TrainConfig& config, const std::string& run) {
  Store store(store_path(config), Access::read);
  write_file_atomically(config.trace, trace_text(store, store.find(run)));
}

void record_progress(Recording& recording, const RunProgress& progress) {
  recording.change([progress](Database& database, std::int64_t run) {
    database
        .prepare(
            "UPDATE runs SET steps = ?2, wall_s = ?3, images_per_s = ?4, train_loss = ?5 WHERE id "
            "= ?1")
        .bind(run, progress.steps, progress.wall_s, progress.images_per_s, progress.train_loss)
        .run();
  });
}

void record_epoch(Recording& recording, const EpochRecord& record, std::int64_t steps,
                  double images_per_s) {
  recording.change([=, end_s = recording.at_s()](Database& database, std::int64_t run) {
    const auto of_test = [&](auto&& get) {
      return record.test ? std::optional(get(*record.test)) : std::nullopt;
    };
    const auto loss = of_test([](const Score& score) { return score.loss; });
    const auto accuracy = of_test([](const Score& score) { return score.accuracy; });
    database
        .prepare(
            "INSERT OR REPLACE INTO epochs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
            "?12, ?13, ?14, ?15)")
        .bind(run, record.epoch, end_s, record.seconds, steps, images_per_s, record.train_loss,
              record.train_accuracy, loss, accuracy,
              record.test ? record.test->flip_accuracy : std::nullopt,
              of_test([](const Score& score) { return score.samples; }), record.data.seen,
              record.data.missing, record.data.twice)
        .run();
    database
        .prepare(
            "UPDATE runs SET train_loss = ?2, test_loss = coalesce(?3, test_loss), test_accuracy = "
            "coalesce(?4, test_accuracy) WHERE id = ?1")
        .bind(run, record.train_loss, loss, accuracy)
        .run();
  });
}

void record_arrivals(Recording& recording, int epoch, const std::vector<Blame>& blames) {
  recording.change([epoch, blames](Database& database, std::int64_t run) {
    Statement row =
        database.prepare("INSERT OR REPLACE INTO arrivals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
    for (const Blame& blame : blames)
      row.bind(run, epoch, blame.rank, blame.steps, blame.last_share, blame.cost_s, blame.step_s,
               blame.uncertainty_s)
          .run();
  });
}

void record_staleness(Recording& recording, const json& histograms) {
  recording.change([histograms](Database& database, std::int64_t run) {
    Statement row =
        database.prepare("INSERT OR REPLACE INTO staleness VALUES (?1, -1, ?2, ?3, ?4)");
    for (std::size_t epoch = 0; epoch < histograms.size(); ++epoch)
      for (std::size_t behind = 0; behind < histograms[epoch].size(); ++behind)
        if (const auto count = histograms[epoch][behind].get<std::int64_t>(); count > 0)
          row.bind(run, epoch + 1, behind, count).run();
  });
}

void record_clocks(Recording& recording, const std::vector<RankTotals>& ranks) {
  recording.change([ranks](Database& database, std::int64_t run) {
    Statement row = database.prepare(
        "UPDATE ranks SET clock_offset_s = ?3, clock_uncertainty_s = ?4 WHERE run = ?1 AND rank = "
        "?2");
    for (std::size_t i = 0; i < ranks.size(); ++i)
      row.bind(run, i, ranks[i].clock_offset_s, ranks[i].clock_uncertainty_s).run();
  });
}

void record_end(Recording& recording, const std::string& state, const json& result,
                const std::string& verdict, const std::string& error) {
  recording.change([=, text = result.dump(-1, ' ', false, json::error_handler_t::replace),
                    ended_s = unix_time_s(),
                    wall_s = recording.at_s()](Database& database, std::int64_t run) {
    database
        .prepare(
            "UPDATE runs SET state = ?2, ended_unix_s = ?3, result = ?4, verdict = ?5, error = ?6, "
            "wall_s = ?7 WHERE id = ?1")
        .bind(run, state, ended_s, result.is_null() ? std::nullopt : std::optional(text), verdict,
              error, wall_s)
        .run();
  });
}

}  // namespace convoy
