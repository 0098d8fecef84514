#include "train/run.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "kernels/parallel.h"
#include "nn/checkpoint.h"
#include "train/parts.h"
#include "train/records.h"
#include "train/resume.h"
#include "train/trainer.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

// Everything that a run is made of, in the order in which it is made. Data and network are checked
// before anything is written.
struct Parts {
  TrainConfig config;
  DataSplit data;
  std::unique_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Loader> train_loader;
  std::unique_ptr<Loader> test_loader;
  RunState state;
  std::string start_name;  // of the checkpoint it goes on from
  fs::path folder;
  FolderLock lock;  // on the folder
};

void make_loaders(Parts& parts) {
  const TrainConfig& config = parts.config;
  parts.train_loader = std::make_unique<Loader>(
      *parts.data.train, LoaderOptions{.batch = int(config.batch),
                                       .seed = std::uint64_t(config.seed),
                                       .augment = augment_options(config),
                                       .threads = int(config.loader_threads)});
  parts.test_loader = std::make_unique<Loader>(
      *parts.data.test, evaluation_loader(int(config.batch), int(config.loader_threads)));
}

void start_from_weights(Parts& parts, std::FILE* human) {
  const auto fresh = load_weights(parts.config.init, parts.model->network(),
                                  parts.model->parameters(), LoadMode::transfer);
  tell(human,
       fmt::format("weights from {}{}\n", parts.config.init,
                   fresh.empty() ? "" : fmt::format("; left fresh: {}", fmt::join(fresh, ", "))));
}

void restore(Parts& parts, const fs::path& checkpoint) {
  parts.start_name = checkpoint.string();
  const auto arenas = parts.optimizer->state();
  const CheckpointState saved =
      load_checkpoint(checkpoint, parts.model->network(), parts.model->parameters(), arenas);
  parts.state = RunState::from_text(saved.position, parts.start_name);
  if (parts.state.steps > parts.train_loader->steps_per_epoch())
    throw DataError("{}: it stands at step {} of an epoch of {}: the data have changed",
                    parts.start_name, parts.state.steps, parts.train_loader->steps_per_epoch());
}

// Starts afresh, from weights, or from a checkpoint.
Parts make_parts(const TrainRequest& request, std::FILE* human) {
  Parts parts;
  parts.config = request.config;
  fs::path checkpoint;
  if (!request.resume.empty()) {
    checkpoint = find_checkpoint(request.resume);
    TrainConfig stored;
    read_toml(stored, read_checkpoint_state(checkpoint).configuration, checkpoint.string());
    if (const fs::path folder = folder_of(checkpoint); !folder.empty())
      stored.out = folder.string();
    parts.config = resumed_config(stored, request.config, request.given);
  }
  check_config(parts.config);
  parts.data = open_split(parts.config);
  parts.model = make_model(parts.config, *parts.data.train);
  parts.optimizer = make_optimizer(optimizer_options(parts.config), parts.model->parameters());
  make_loaders(parts);
  if (!checkpoint.empty())
    restore(parts, checkpoint);
  else if (!parts.config.init.empty())
    start_from_weights(parts, human);
  else
    set_start(start_options(parts.config), *parts.data.train, *parts.model);
  return parts;
}

// Makes the folder, which must not hold another run, nor be written by one.
void prepare_folder(Parts& parts, bool resumed) {
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

void save(const Parts& parts, const RunState& state) {
  const fs::path folder = parts.folder / "checkpoints";
  const auto arenas = parts.optimizer->state();
  save_checkpoint(folder, parts.model->network(), parts.model->parameters(), arenas,
                  {.epoch = state.epochs,
                   .step = state.steps,
                   .position = state.to_text(),
                   .configuration = to_toml(parts.config)});
  prune_checkpoints(folder, int(parts.config.keep));
}

// "1 epoch", "2,000 epochs".
std::string counted(std::int64_t number, const char* thing) {
  return fmt::format("{} {}{}", with_commas(std::uint64_t(number)), thing, number == 1 ? "" : "s");
}

void print_headline(const Parts& parts, std::FILE* human) {
  const Network& network = parts.model->network();
  const std::int64_t steps =
      std::int64_t(parts.train_loader->steps_per_epoch()) * parts.config.epochs;
  tell(human,
       fmt::format("{}: {} parameters, {} ({} of {}), batch {}, {} in {}, {}, {}\n", network.name(),
                   with_commas(network.parameter_count()), parts.config.data,
                   counted(std::int64_t(parts.data.train->size()), "training sample"),
                   network.input_shape().to_string(), parts.config.batch, counted(steps, "step"),
                   counted(parts.config.epochs, "epoch"),
                   precision_name(parts.model->options().precision), counted(threads(), "thread")));
  if (!parts.start_name.empty() && parts.state.epochs < parts.config.epochs)
    tell(human, fmt::format("going on from {}: epoch {}, after {}\n", parts.start_name,
                            parts.state.epochs + 1, counted(parts.state.steps, "step")));
  std::fflush(human);
}

nlohmann::json make_answer(const Parts& parts, const Trainer& trainer) {
  const RunState& state = trainer.state();
  nlohmann::json answer = {{"test_accuracy", nullptr},
                           {"test_loss", nullptr},
                           {"train_loss", nullptr},
                           {"images_per_s", trainer.images_per_s()},
                           {"wall_s", trainer.time().wall_s()},
                           {"epochs", state.epochs},
                           {"steps", state.updates},
                           {"workers", 1},
                           {"servers", 0},
                           {"weights_sha256", parts.model->parameters().sha256()},
                           {"run", parts.folder.filename().string()},
                           {"checkpoint", (parts.folder / "final.safetensors").string()},
                           {"model", parts.config.model},
                           {"data", parts.config.data},
                           {"parameters", parts.model->network().parameter_count()},
                           {"precision", precision_name(parts.model->options().precision)},
                           {"threads", threads()},
                           {"phases_s", phases_json(trainer.time())},
                           {"history", history_json(state.history)}};
  if (state.history.empty()) return answer;
  const EpochRecord& last = state.history.back();
  answer["train_loss"] = last.train_loss;
  answer["seen"] = last.data.seen;
  answer["missing"] = last.data.missing;
  answer["twice"] = last.data.twice;
  if (last.test) {
    answer["test_accuracy"] = last.test->accuracy;
    answer["test_loss"] = last.test->loss;
    if (last.test->flip_accuracy) answer["test_accuracy_flip"] = *last.test->flip_accuracy;
  }
  return answer;
}

void print_summary(const Parts& parts, const Trainer& trainer, std::FILE* human) {
  const EpochRecord& last = trainer.state().history.back();
  const TimeLedger& time = trainer.time();
  std::vector<std::pair<std::string, std::string>> rows;
  if (last.test)
    rows.push_back({"test accuracy",
                    fmt::format("{:.2f} %  (loss {:.4f}, {} samples)", 100 * last.test->accuracy,
                                last.test->loss, with_commas(std::uint64_t(last.test->samples)))});
  if (last.test && last.test->flip_accuracy)
    rows.push_back({"  flips averaged", fmt::format("{:.2f} %", 100 * *last.test->flip_accuracy)});
  rows.push_back({"train loss", fmt::format("{:.4f}", last.train_loss)});
  rows.push_back({"data", last.data.to_string()});
  rows.push_back(
      {"speed", fmt::format("{} images/s", with_commas(std::uint64_t(trainer.images_per_s())))});
  rows.push_back({"wall time", fmt::format("{:.1f} s", time.wall_s())});
  for (std::size_t i = 0; i < kPhaseNames.size(); ++i)
    rows.push_back(
        {fmt::format("  {}", kPhaseNames[i]),
         fmt::format("{:8.1f} s  {:5.1f} %", time.seconds(Phase(i)),
                     time.wall_s() > 0 ? 100 * time.seconds(Phase(i)) / time.wall_s() : 0.0)});
  rows.push_back({"weights", (parts.folder / "final.safetensors").string()});
  tell(human, fmt::format("\n{}", summary_table(rows)));
}

// Trains, and leaves weights, checkpoints and a record that says how it went.
TrainResult carry_out(Parts& parts, Trainer& trainer, std::FILE* human) {
  const int team = threads();
  write_run_record(parts.folder, parts.config, team, "running", nullptr);
  try {
    const bool finished = trainer.run();
    if (finished)
      save_weights(parts.folder / "final.safetensors", parts.model->network(),
                   parts.model->parameters());
    TrainResult result{
        .finished = finished, .folder = parts.folder, .answer = make_answer(parts, trainer)};
    write_run_record(parts.folder, parts.config, team, finished ? "finished" : "interrupted",
                     result.answer);
    if (finished) print_summary(parts, trainer, human);
    return result;
  } catch (const std::exception& error) {
    const std::string reason = error.what();
    try {
      write_run_record(parts.folder, parts.config, team, "failed", {{"error", reason}});
    } catch (const DataError&) {  // the first error is the one to report
    }
    throw;
  }
}

}  // namespace

TrainResult train(const TrainRequest& request, std::FILE* human) {
  Parts parts = make_parts(request, human);
  prepare_folder(parts, !request.resume.empty());
  const InterruptGuard interrupt;
  const bool complete = parts.state.epochs >= parts.config.epochs;
  print_headline(parts, human);
  Trainer trainer(parts.config,
                  {.model = *parts.model,
                   .optimizer = *parts.optimizer,
                   .train_loader = *parts.train_loader,
                   .test_loader = *parts.test_loader,
                   .train_samples = parts.data.train->size(),
                   .interrupt = interrupt,
                   .save = [&](const RunState& state) { save(parts, state); }},
                  parts.state, parts.start_name);
  if (!complete) return carry_out(parts, trainer, human);
  tell(human, fmt::format("training is complete already, after {}: --epochs N goes on\n",
                          counted(parts.state.epochs, "epoch")));
  save_weights(parts.folder / "final.safetensors", parts.model->network(),
               parts.model->parameters());
  return {.finished = true, .folder = parts.folder, .answer = make_answer(parts, trainer)};
}

}  // namespace convoy
