#include "train/server_run.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "nn/checkpoint.h"
#include "sync/ps/server.h"
#include "train/carry_out.h"
#include "train/replay.h"
#include "train/server_trainer.h"
#include "train/summary.h"
#include "world/first_ranks.h"

namespace convoy {
namespace {

TrainResult serve(World world, int workers) {
  ParameterServer server(world, workers);
  server.run();
  world.transport.close(10);
  return {.finished = true, .leads = false, .folder = {}, .answer = {}};
}

// Also makes the number of updates one of this policy and these workers, where the run goes on from
// one that had others.
ServerJob make_job(RunParts& parts, const TrainRequest& request) {
  const TrainConfig& config = parts.config;
  const Parameters& parameters = parts.model->parameters();
  const std::size_t buffers = [&] {
    std::size_t count = 0;
    for (const Buffer& buffer : parameters.buffers()) count += buffer.values.size();
    return count;
  }();
  const CourseOptions course{.epochs = int(config.epochs),
                             .first_epoch = parts.state.epochs,
                             .first_step = parts.state.steps,
                             .samples = std::int64_t(parts.data->train->size()),
                             .batch = config.batch,
                             .parts = int(config.workers),
                             .test_steps = parts.test_loader->steps_per_epoch(),
                             .eval_every = config.eval_every,
                             .guard = config.guard};
  const std::int64_t each =
      combines(config.policy) ? course.steps() : course.parts_of_epoch();  // updates of an epoch
  parts.state.updates = parts.state.epochs * each +
                        parts.state.steps * each / std::max<std::int64_t>(course.steps(), 1);
  const LayoutOptions options{.servers = int(config.servers),
                              .slice_bytes = std::size_t(config.slice_mib * (1 << 20)),
                              .whole_parameters = config.optimizer == "lars",
                              .extra = parts.shards ? buffers : 0};
  return {.workers = int(config.workers),
          .policy = config.policy,
          .optimizer = optimizer_options(config),
          .schedule = schedule_options(config),
          .updates_per_epoch = each,
          .epochs = int(config.epochs),
          .updates = parts.state.updates,
          .layout = make_layout(parameters.list(), parts.buckets, options),
          .parameters = {parameters.list().begin(), parameters.list().end()},
          .virtual_shards = parts.shards ? int(config.virtual_shards) : 0,
          .wire = config.wire,
          .buffers = parts.shards ? 0 : buffers,
          .course = course,
          .replicas = int(config.replicas),
          .snapshot_every = config.snapshot_every,
          .shared_bytes = config.world == "sim" || parts.shards || config.wire != "f32"
                              ? 0
                              : parameters.gradients().size_bytes(),
          .update_s_per_byte = request.update_s_per_byte};
}

// By the leading worker; without a job the servers go home.
void start_servers(RunParts& parts, Transport& transport, const ServerJob* job) {
  std::vector<float> values(parts.model->parameters().values().begin(),
                            parts.model->parameters().values().end());
  if (parts.shards)
    for (const Buffer& buffer : parts.model->parameters().buffers())
      values.insert(values.end(), buffer.values.begin(), buffer.values.end());
  const std::vector<NamedArena> state = parts.optimizer->state();
  parts.workers->comm().run([&](Communicator&) {
    for (int server = 0; server < int(parts.config.servers); ++server)
      send_setup(transport, int(parts.config.workers), server, job, values, state);
  });
}

TrainResult complete_already(RunParts& parts, std::FILE* human) {
  if (parts.workers->leads())
    tell(human, fmt::format("training is complete already, after {}: --epochs N goes on\n",
                            counted(parts.state.epochs, "epoch")));
  parts.workers->close();
  return {.finished = true,
          .leads = parts.workers->leads(),
          .folder = parts.folder,
          .answer = nlohmann::json::object()};
}

}  // namespace

TrainResult train_with_servers(const TrainRequest& request, const ResolvedConfig& resolved,
                               World outer, const InterruptGuard& interrupt, std::FILE* human) {
  const int workers = int(resolved.config.workers);
  if (outer.transport.rank() >= workers) return serve(outer, workers);
  CountedTransport traffic(outer.transport);
  const World world{outer.runtime, traffic};
  FirstRanks first(world.transport, workers);
  RunParts parts = make_parts(request, resolved, World{world.runtime, first}, human);
  const bool leads = parts.workers->leads();
  if (leads) prepare_folder(parts, !request.resume.empty());
  parts.folder = parts.workers->spread(parts.folder.string());
  const bool complete = parts.state.epochs >= parts.config.epochs;
  std::optional<ServerJob> job;
  if (!complete) job = make_job(parts, request);
  TimeLedger time(world.runtime, parts.model->network().nodes().size());
  RunEntry entry =
      enter_run(parts, time, traffic, complete ? nullptr : request.writer, !request.resume.empty());
  entry.recording->start_epoch(parts.state.epochs + 1);
  if (leads) print_headline(parts, human);
  if (leads) start_servers(parts, world.transport, job ? &*job : nullptr);
  if (complete) return complete_already(parts, human);
  ServerClient client(world, *job);
  if (!client.shared().empty()) parts.model->parameters().place_gradients(client.shared());
  ServerStrategy strategy({.client = client,
                           .layout = job->layout,
                           .parameters = parts.model->parameters(),
                           .shards = parts.shards.get(),
                           .overlap = parts.config.overlap,
                           .wire = parts.config.wire});
  Worker worker({.model = *parts.model,
                 .strategy = strategy,
                 .runtime = world.runtime,
                 .time = time,
                 .shards = parts.shards.get(),
                 .pace = parts.pace.get(),
                 .recording = entry.recording.get(),
                 .checks_gradients = true},
                parts.buckets);
  ServerTrainer trainer(
      parts.config,
      {.job = *job,
       .rank = world.transport.rank(),
       .model = *parts.model,
       .worker = worker,
       .strategy = strategy,
       .client = client,
       .train_loader = *parts.train_loader,
       .test_loader = *parts.test_loader,
       .time = time,
       .recording = *entry.recording,
       .interrupt = interrupt,
       .optimizer = *parts.optimizer,
       .save = [&](const RunState& state) { save(parts, state); },
       .keep_case = [&](const NotFinite& found) { return keep_case(parts, found); }},
      parts.state);
  return carry_out(parts,
                   {.run = [&] { return trainer.run(); },
                    .view = [&] { return trainer.view(); },
                    .leave = [&] { client.leave(); },
                    .entry = &entry,
                    .together = false,
                    .totals = [&] { return trainer.totals(); }},
                   human);
}

}  // namespace convoy
