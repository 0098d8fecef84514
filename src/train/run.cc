#include "train/run.h"

#include "base/error.h"
#include "base/log.h"
#include "kernels/parallel.h"
#include "nn/checkpoint.h"
#include "train/carry_out.h"
#include "train/replay.h"
#include "train/resume.h"
#include "train/run_rows.h"
#include "train/server_run.h"
#include "train/setup.h"
#include "train/summary.h"
#include "train/trainer.h"

namespace convoy {
namespace {

TrainResult already_complete(RunParts& parts, const RunView& view, std::FILE* human) {
  TrainResult result{
      .finished = true, .leads = parts.workers->leads(), .folder = parts.folder, .answer = {}};
  if (result.leads) {
    tell(human, fmt::format("training is complete already, after {}: --epochs N goes on\n",
                            counted(parts.state.epochs, "epoch")));
    save_weights(parts.folder / "final.safetensors", parts.model->network(),
                 parts.model->parameters());
    result.answer = make_answer(parts, view, "");
  }
  parts.workers->close();
  return result;
}

}  // namespace

TrainResult train(const TrainRequest& request, World outer, const InterruptGuard& interrupt,
                  std::FILE* human) {
  CountedTransport traffic(outer.transport);
  const World world{outer.runtime, traffic};
  const ResolvedConfig resolved = resolve_config(request, world);
  if (resolved.config.sync == "ps")
    return train_with_servers(request, resolved, world, interrupt, human);
  RunParts parts = make_parts(request, resolved, world, human);
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
                 .shards = parts.shards.get(),
                 .pace = parts.pace.get(),
                 .recording = entry.recording.get(),
                 .checks_gradients = parts.allreduce || parts.shards || parts.shares_weights},
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
  if (complete) return already_complete(parts, trainer.view(), human);
  return carry_out(parts,
                   {.run = [&] { return trainer.run(); },
                    .view = [&] { return trainer.view(); },
                    .leave = [] {},
                    .entry = &entry},
                   human);
}

}  // namespace convoy
