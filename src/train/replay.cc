#include "train/replay.h"

#include <cmath>

#include "base/error.h"
#include "nn/checkpoint.h"
#include "train/parts.h"

namespace convoy {
namespace {

// The first thing that is not finite after forward and backward; empty: nothing.
std::string find_not_finite(Model& model, const Batch& batch, int global) {
  if (!std::isfinite(model.forward(batch, {}, global).loss_sum)) return "the loss";
  model.backward();
  for (const Parameter& parameter : model.parameters().list())
    for (std::size_t i = parameter.begin; i < parameter.end; ++i)
      if (!std::isfinite(model.parameters().gradients()[i]))
        return "the gradient of " + parameter.spec.name;
  return {};
}

}  // namespace

std::string keep_case(const RunParts& parts, const NotFinite& found) {
  const nlohmann::json position = {{"replay", found.place},
                                   {"epoch", found.epoch},
                                   {"samples", found.samples},
                                   {"global", found.global},
                                   {"worker", parts.workers->rank()}};
  try {
    const std::filesystem::path file = save_checkpoint(
        parts.folder / "replay", parts.model->network(), parts.model->parameters(), {},
        {.epoch = int(found.epoch),
         .step = parts.workers->rank(),
         .position = position.dump(),
         .configuration = to_toml(parts.config)});
    return fmt::format("convoy replay {} runs it again", file.string());
  } catch (const DataError&) {
    return {};
  }
}

Replay replay(const std::string& file, int threads) {
  const CheckpointState saved = read_checkpoint_state(file);
  Replay result;
  std::uint32_t epoch = 0;
  int global = 0;
  try {
    const nlohmann::json position = nlohmann::json::parse(saved.position);
    result.recorded = position.at("replay");
    result.samples = position.at("samples").get<std::vector<std::uint32_t>>();
    result.worker = position.at("worker");
    epoch = position.at("epoch");
    global = position.at("global");
  } catch (const nlohmann::json::exception&) {
    throw DataError("{} is no case to replay: those lie in the folder replay of a run that failed",
                    file);
  }
  TrainConfig config;
  read_toml(config, saved.configuration, file);
  if (threads > 0) config.threads = threads;
  const DataSplit data = open_split(config);
  for (const std::uint32_t sample : result.samples)
    if (sample >= data.train->size())
      throw DataError("{}: its sample {} is not among the {} of {}: the data have changed", file,
                      sample, data.train->size(), config.data);
  const auto model = make_model(config, *data.train, int(result.samples.size()));
  load_checkpoint(file, model->network(), model->parameters(), {});
  const Loader loader(*data.train, {.batch = int(config.batch),
                                    .seed = std::uint64_t(config.seed),
                                    .share = {},
                                    .augment = augment_options(config)});
  result.found = find_not_finite(*model, loader.batch_of(epoch, result.samples), global);
  for (const std::uint32_t sample : result.samples)
    if (!find_not_finite(*model, loader.batch_of(epoch, {sample}), global).empty())
      result.alone.push_back(sample);
  return result;
}

}  // namespace convoy
