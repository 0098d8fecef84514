#include "train/parts.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/precision.h"
#include "nn/zoo.h"

namespace convoy {

DataSplit open_split(const TrainConfig& config, const DataPart& part, const OpenBytes& open_bytes) {
  const Shape input = config.input.empty() ? Shape{} : parse_shape(config.input, "--input");
  DataSplit split = open_data({.name = config.data,
                               .root = config.data_root,
                               .limit = std::size_t(config.limit),
                               .image_size = input,
                               .seed = std::uint64_t(config.seed),
                               .train_part = part,
                               .test_part = part,
                               .open_bytes = open_bytes});
  if (!config.input.empty() && split.train->shape() != input)
    throw ConfigError("--input {} does not fit {}, whose images are {}", config.input, config.data,
                      split.train->shape().to_string());
  if (config.classes > 0 && config.classes < split.train->classes())
    throw ConfigError("--classes {} is fewer than the {} classes of {}", config.classes,
                      split.train->classes(), config.data);
  return split;
}

std::unique_ptr<Model> make_model(const TrainConfig& config, const Dataset& data, int prepared,
                                  StatisticsExchange* exchange) {
  const int classes = config.classes > 0 ? int(config.classes) : data.classes();
  const std::size_t batch =
      prepared > 0 ? std::size_t(prepared)
                   : std::min(std::size_t(config.batch), std::max<std::size_t>(data.size(), 1));
  Network network = make_network(config.model, data.shape(), classes);
  for (const std::string& layer : frozen_layers(config)) network.freeze(layer);
  return std::make_unique<Model>(std::move(network),
                                 ModelOptions{.batch = int(batch),
                                              .precision = parse_precision(config.precision),
                                              .threads = int(config.threads),
                                              .seed = std::uint64_t(config.seed),
                                              .label_smoothing = float(config.label_smoothing),
                                              .exchange = exchange,
                                              .fixed_algorithms = config.invariant});
}

std::shared_ptr<const DataSplit> SharedData::open(const TrainConfig& config) {
  const std::lock_guard lock(mutex_);
  if (!split_) split_ = std::make_shared<const DataSplit>(open_split(config));
  return split_;
}

}  // namespace convoy
