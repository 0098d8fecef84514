#include "train/setup.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "kernels/cpu.h"
#include "kernels/parallel.h"
#include "nn/checkpoint.h"
#include "sync/local_strategy.h"
#include "sync/ps/policy.h"
#include "sync/shared_strategy.h"
#include "train/host_arenas.h"
#include "train/parts.h"
#include "train/records.h"
#include "train/resume.h"
#include "world/mpi/mpi_file.h"
#include "world/mpi/mpi_world.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

constexpr int kSetupChannel = 1;
constexpr double kFirstBucketMiB = 4;
constexpr double kServerBucketMiB = 0.25;  // about a layer: what is pulled first is used first

// Samples that a worker's network is prepared for: the same number everywhere, since the layout of
// weights may depend on it.
int prepared_batch(const TrainConfig& config, std::size_t samples) {
  const std::int64_t batch =
      std::min<std::int64_t>(config.batch, std::max<std::int64_t>(std::int64_t(samples), 1));
  const std::int64_t parts = config.invariant ? config.virtual_shards : config.workers;
  return int((batch + parts - 1) / parts);
}

// What must be equal on all workers, besides program and arguments: data and layout.
std::string fingerprint(const RunParts& parts) {
  const Dataset& train = *parts.data->train;
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto take = [&](std::uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3; };
  std::vector<std::uint8_t> image(train.shape().count());
  const std::size_t stride = std::max<std::size_t>(train.size() / 64, 1);
  const bool whole = parts.config.read == "whole";  // parts differ
  for (std::size_t i = 0; whole && i < train.size(); ++i) {
    take(std::uint8_t(train.label(i)));
    if (i % stride != 0) continue;
    train.read(i, image);
    for (const std::uint8_t byte : image) take(byte);
  }
  return fmt::format(
      "{} with {} training samples (content {:016x}), {} test samples, {} arena of {}",
      parts.config.data, train.whole_size(), hash, parts.data->test->whole_size(),
      precision_name(parts.model->options().precision), parts.model->parameters().values().size());
}

void compare_workers(RunParts& parts) {
  if (parts.workers->size() == 1) return;
  const std::vector<std::string> all = parts.workers->gather(fingerprint(parts));
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i] != all[0])
      throw ConfigError(
          "worker {} has other data or another kind of CPU than worker 0: {}; worker "
          "0: {}; make them equal (--data-root, --precision f32)",
          i, all[i], all[0]);
}

// All of it, or the own part. Through MPI, all ranks read their parts of a file together.
std::shared_ptr<const DataSplit> open_for_worker(const TrainRequest& request, RunParts& parts) {
  Workers& workers = *parts.workers;
  if (parts.config.read == "whole")
    return request.shared_data ? request.shared_data->open(parts.config)
                               : std::make_shared<const DataSplit>(open_split(parts.config));
  const DataPart own{.index = workers.rank(), .of = workers.size()};
  std::shared_ptr<const DataSplit> split;
  workers.comm().run([&](Communicator&) {
    split = std::make_shared<const DataSplit>(
        open_split(parts.config, own, started_by_mpi() ? open_mpi_bytes : open_file_bytes));
  });
  return split;
}

void make_loaders(RunParts& parts) {
  const TrainConfig& config = parts.config;
  parts.train_loader = std::make_unique<Loader>(
      *parts.data->train, LoaderOptions{.batch = int(config.batch),
                                        .seed = std::uint64_t(config.seed),
                                        .share = {},
                                        .parts = config.read == "part" ? parts.workers->size() : 0,
                                        .augment = augment_options(config),
                                        .threads = int(config.loader_threads)});
  const bool whole = config.read == "whole";
  LoaderOptions evaluation = evaluation_loader(int(config.batch), int(config.loader_threads));
  const int rank = parts.workers->rank();
  if (whole) evaluation.share = {.from = rank, .to = rank + 1, .size = parts.workers->size()};
  parts.test_loader = std::make_unique<Loader>(*parts.data->test, evaluation);
}

void start_from_weights(RunParts& parts, std::FILE* human) {
  const auto fresh = load_weights(parts.config.init, parts.model->network(),
                                  parts.model->parameters(), LoadMode::transfer);
  tell(human,
       fmt::format("weights from {}{}\n", parts.config.init,
                   fresh.empty() ? "" : fmt::format("; left fresh: {}", fmt::join(fresh, ", "))));
}

void restore(RunParts& parts, const fs::path& checkpoint) {
  parts.start_name = checkpoint.string();
  const auto arenas = parts.optimizer->state();
  const CheckpointState saved =
      load_checkpoint(checkpoint, parts.model->network(), parts.model->parameters(), arenas);
  parts.state = RunState::from_text(saved.position, parts.start_name);
  if (parts.state.steps > parts.train_loader->steps_per_epoch())
    throw DataError("{}: it stands at step {} of an epoch of {}: the data have changed",
                    parts.start_name, parts.state.steps, parts.train_loader->steps_per_epoch());
  // Asynchronous servers make an update for every worker: what counts is the place in the schedule.
  parts.state.updates =
      std::int64_t(parts.state.epochs) * parts.train_loader->steps_per_epoch() + parts.state.steps;
}

// All go on with what worker 0 has, whatever it came from.
void spread_start(RunParts& parts) {
  Workers& workers = *parts.workers;
  if (workers.size() == 1) return;
  if (!parts.shares_weights)
    workers.spread(std::as_writable_bytes(parts.model->parameters().values()));
  for (Buffer& buffer : parts.model->parameters().buffers())
    workers.spread(std::as_writable_bytes(std::span(buffer.values)));
  if (!parts.shares_weights)
    for (const NamedArena& arena : parts.optimizer->state())
      workers.spread(std::as_writable_bytes(arena.second));
  const std::string text = workers.spread(workers.leads() ? parts.state.to_text() : "");
  if (!workers.leads()) parts.state = RunState::from_text(text, "worker 0");
}

// Gradients in memory that the workers of a host share; weights, too, where all are on one host and
// nothing was said about how gradients are to travel.
void prepare_update(RunParts& parts, World world) {
  const TrainConfig& config = parts.config;
  Workers& workers = *parts.workers;
  Parameters& parameters = parts.model->parameters();
  if (config.world != "sim") share_gradients(workers, world, parameters);
  parts.shares_weights = config.world != "sim" && shares_everything(world) && !config.invariant &&
                         config.algorithm == "auto" && config.wire == "f32" &&
                         config.bucket_mib == 0 && config.overlap && config.optimizer != "lars";
  if (parts.shares_weights) share_values(workers, world, parameters);
  const auto batch = std::size_t(config.batch);
  const std::size_t steps = (parts.data->train->whole_size() + batch - 1) / batch;
  parts.optimizer =
      with_lookahead(lookahead_options(config, config.epochs * std::int64_t(steps)),
                     make_optimizer(optimizer_options(config), parameters), parameters.values());
  if (parts.shares_weights) share_state(workers, world, *parts.optimizer);
}

void make_strategy(RunParts& parts, World world) {
  Parameters& parameters = parts.model->parameters();
  const std::vector<LayerRange> layers = layer_ranges(parameters);
  const std::size_t arena = parameters.gradients().size();
  parts.buckets = {{.id = 0, .begin = 0, .end = arena}};
  if (parts.config.invariant) parts.shards = std::make_unique<ShardStore>(parameters);
  if (parts.config.sync == "ps") {
    const double mib = parts.config.bucket_mib > 0 ? parts.config.bucket_mib : kServerBucketMiB;
    if (!parts.shards) parts.buckets = simple_plan(layers, std::size_t(mib * (1 << 20))).buckets;
  } else if (parts.config.invariant) {
    parts.strategy = std::make_unique<InvariantStrategy>(parts.workers->comm(), *parts.optimizer,
                                                         parameters, *parts.shards);
  } else if (parts.shares_weights) {
    parts.strategy =
        std::make_unique<SharedStrategy>(parts.workers->comm(), *world.transport.host_memory(),
                                         *parts.optimizer, parameters.gradients());
    parts.buckets = simple_plan(layers, 1).buckets;
  } else if (parts.workers->size() == 1 && parts.config.wire == "f32") {
    parts.strategy = std::make_unique<LocalStrategy>(*parts.optimizer);
  } else {
    parts.wire = make_wire_format(parts.config.wire, arena);
    parts.wire->keep_zero(parameters.padding());
    auto strategy =
        std::make_unique<AllReduceStrategy>(parts.workers->comm(), *parts.wire, *parts.optimizer,
                                            parameters.gradients(), parts.config.overlap);
    const double mib = parts.config.bucket_mib > 0 ? parts.config.bucket_mib : kFirstBucketMiB;
    strategy->set_plan(simple_plan(layers, std::size_t(mib * (1 << 20))));
    parts.buckets = strategy->plan().buckets;
    parts.allreduce = strategy.get();
    parts.strategy = std::move(strategy);
  }
}

}  // namespace

void check_workers(const TrainConfig& config) {
  parse_balance(config.balance, int(config.workers));
  if (config.workers > config.batch)
    throw ConfigError(
        "--workers {} is more than the {} samples of a batch: some would never have "
        "any; raise --batch, or take fewer workers",
        config.workers, config.batch);
  if (config.invariant && config.workers > config.virtual_shards)
    throw ConfigError(
        "--workers {} is more than --virtual-shards {}: some would have nothing to do",
        config.workers, config.virtual_shards);
  if (config.sync == "ps") make_policy(config.policy, int(config.workers));
}

ResolvedConfig resolve_config(const TrainRequest& request, World world) {
  Workers setup(world, {.channel = kSetupChannel});
  ResolvedConfig resolved{.config = request.config, .checkpoint = {}};
  TrainConfig& config = resolved.config;
  if (!request.resume.empty() && setup.leads()) {
    resolved.checkpoint = find_checkpoint(request.resume);
    TrainConfig stored = stored_config(resolved.checkpoint);
    if (const fs::path folder = folder_of(resolved.checkpoint); !folder.empty())
      stored.out = folder.string();
    config = resumed_config(stored, request.config, request.given);
  }
  const std::string text = setup.spread(setup.leads() ? to_toml(config) : "");
  if (!setup.leads()) {
    config = {};
    read_toml(config, text, "configuration of worker 0");
  }
  config.workers = setup.size() - (config.sync == "ps" ? config.servers : 0);
  if (config.workers < 1)
    throw ConfigError("--servers {}: the job has {} ranks, which leaves no worker", config.servers,
                      setup.size());
  check_config(config);
  check_workers(config);
  return resolved;
}

RunParts make_parts(const TrainRequest& request, const ResolvedConfig& resolved, World world,
                    std::FILE* human) {
  RunParts parts;
  parts.config = resolved.config;
  const fs::path& checkpoint = resolved.checkpoint;
  parts.workers = std::make_unique<Workers>(
      world, CommunicatorOptions{.algorithm = parts.config.algorithm, .ranks = {}});
  const bool leads = parts.workers->leads();
  const double start_s = world.runtime.now_s();
  parts.data = open_for_worker(request, parts);
  parts.read_s = world.runtime.now_s() - start_s;
  TrainConfig local = parts.config;
  if (local.threads == 0 && request.threads > 0) local.threads = request.threads;
  // oneDNN's sums depend on the number of threads; ours do not.
  const bool f32 = parse_precision(local.precision) == Precision::f32;
  if (local.threads == 0 && local.invariant && f32) local.threads = 1;
  if (parts.config.batch_norm == "sync" && parts.workers->size() > 1)
    parts.statistics = std::make_unique<WorkerStatistics>(*parts.workers);
  parts.model = make_model(local, *parts.data->train,
                           prepared_batch(parts.config, parts.data->train->whole_size()),
                           parts.statistics.get());
  prepare_update(parts, world);
  make_loaders(parts);
  compare_workers(parts);
  if (leads && !checkpoint.empty())
    restore(parts, checkpoint);
  else if (leads && !parts.config.init.empty())
    start_from_weights(parts, human);
  else if (leads)
    set_start(start_options(parts.config), *parts.data->train, *parts.model);
  spread_start(parts);
  parts.transport = request.transport;
  make_strategy(parts, world);
  // Messages that are sent after backward keep nobody from computing.
  if (request.images_per_s > 0)
    parts.pace = std::make_unique<Pace>(parts.model->network(), request.images_per_s,
                                        parts.config.overlap ? request.message_s_per_byte : 0.0);
  return parts;
}

void prepare_folder(RunParts& parts, bool resumed) {
  if (parts.config.out.empty()) {
    parts.folder = claim_run_folder(parts.config);
    parts.config.out = parts.folder.string();
    parts.lock = FolderLock(parts.folder);
    return;
  }
  parts.folder = fs::path(parts.config.out).lexically_normal();
  if (!parts.folder.has_filename()) parts.folder = parts.folder.parent_path();
  std::error_code ignored;
  const bool used = fs::exists(parts.folder / "final.safetensors", ignored) ||
                    latest_checkpoint(parts.folder / "checkpoints").has_value();
  if (used && !resumed)
    throw ConfigError("{} holds a run already: go on with --resume {}, or choose another --out",
                      parts.config.out, parts.config.out);
  make_folder(parts.folder);
  parts.lock = FolderLock(parts.folder);
  remove_unfinished(parts.folder);
  remove_unfinished(parts.folder / "checkpoints");
}

void save(const RunParts& parts, const RunState& state) {
  const fs::path folder = parts.folder / "checkpoints";
  const auto arenas = parts.optimizer->state();
  save_checkpoint(folder, parts.model->network(), parts.model->parameters(), arenas,
                  {.epoch = state.epochs,
                   .step = state.steps,
                   .position = state.to_text(),
                   .configuration = to_toml(parts.config)});
  prune_checkpoints(folder, int(parts.config.keep));
}

}  // namespace convoy
