#include "train/run.h"

#include "base/error.h"
#include "base/log.h"
#include "kernels/parallel.h"
#include "nn/checkpoint.h"
#include "train/records.h"
#include "train/replay.h"
#include "train/resume.h"
#include "train/run_rows.h"
#include "train/setup.h"
#include "train/summary.h"
#include "train/trainer.h"

namespace convoy {
namespace {

// Trains, and leaves weights, checkpoints and a record that says how it went.
TrainResult carry_out(RunParts& parts, Trainer& trainer, RunEntry& entry, std::FILE* human) {
  const bool leads = parts.workers->leads();
  const int team = threads();
  const auto record = [&](const std::string& state, const nlohmann::json& result) {
    if (leads) write_run_record(parts.folder, parts.config, team, state, result);
  };
  record("running", nullptr);
  try {
    TrainResult result{
        .finished = trainer.run(), .leads = leads, .folder = parts.folder, .answer = {}};
    entry.recording->finish();
    const std::vector<RankTotals> totals = entry.recording->all_totals();
    const std::string sentence = verdict(totals);
    record_clocks(*entry.recording, totals);
    if (leads) {
      if (result.finished)
        save_weights(parts.folder / "final.safetensors", parts.model->network(),
                     parts.model->parameters());
      result.answer = make_answer(parts, trainer, entry.name);
      result.answer["verdict"] = sentence;
      result.answer["ledger_error"] = ledger_error(totals);
      record_end(*entry.recording, result.finished ? "finished" : "interrupted", result.answer,
                 sentence, "");
      record(result.finished ? "finished" : "interrupted", result.answer);
      entry.recording->flush();
      if (!parts.config.trace.empty()) write_trace(parts.config, entry.name);
      if (entry.logs) entry.logs->end(result.finished);
      if (result.finished)
        print_summary(parts, trainer, {entry.name, sentence, entry.recording->own_cost_s()}, human);
    }
    parts.workers->close();
    return result;
  } catch (const std::exception& error) {
    const std::string reason = error.what();
    entry.recording->abandon();
    record_end(*entry.recording, "failed", nullptr, "", reason);
    try {
      record("failed", {{"error", reason}});
    } catch (const DataError&) {  // the first error is the one to report
    }
    throw;
  }
}

TrainResult already_complete(RunParts& parts, const Trainer& trainer, std::FILE* human) {
  TrainResult result{
      .finished = true, .leads = parts.workers->leads(), .folder = parts.folder, .answer = {}};
  if (result.leads) {
    tell(human, fmt::format("training is complete already, after {}: --epochs N goes on\n",
                            counted(parts.state.epochs, "epoch")));
    save_weights(parts.folder / "final.safetensors", parts.model->network(),
                 parts.model->parameters());
    result.answer = make_answer(parts, trainer, "");
  }
  parts.workers->close();
  return result;
}

}  // namespace

TrainResult train(const TrainRequest& request, World outer, const InterruptGuard& interrupt,
                  std::FILE* human) {
  CountedTransport traffic(outer.transport);
  const World world{outer.runtime, traffic};
  RunParts parts = make_parts(request, world, human);
  const bool leads = parts.workers->leads();
  if (leads) prepare_folder(parts, !request.resume.empty());
  parts.folder = parts.workers->spread(parts.folder.string());
  const bool complete = parts.state.epochs >= parts.config.epochs;
  TimeLedger time(world.runtime, parts.model->network().nodes().size());
  RunEntry entry =
      enter_run(parts, time, traffic, complete ? nullptr : request.writer, !request.resume.empty());
  if (leads) print_headline(parts, human);
  Worker worker({.model = *parts.model,
                 .strategy = *parts.strategy,
                 .runtime = world.runtime,
                 .time = time,
                 .invariant = parts.invariant,
                 .pace = parts.pace.get(),
                 .recording = entry.recording.get(),
                 .checks_gradients = parts.allreduce || parts.invariant || parts.shares_weights},
                parts.buckets);
  Trainer trainer(parts.config,
                  {.workers = *parts.workers,
                   .model = *parts.model,
                   .worker = worker,
                   .allreduce = parts.allreduce,
                   .train_loader = *parts.train_loader,
                   .test_loader = *parts.test_loader,
                   .time = time,
                   .recording = *entry.recording,
                   .logs = entry.logs.get(),
                   .load_s = request.load_s,
                   .train_samples = parts.data->train->whole_size(),
                   .interrupt = interrupt,
                   .save = [&](const RunState& state) { save(parts, state); },
                   .keep_case = [&](const NotFinite& found) { return keep_case(parts, found); }},
                  parts.state, parts.start_name);
  return complete ? already_complete(parts, trainer, human)
                  : carry_out(parts, trainer, entry, human);
}

}  // namespace convoy
