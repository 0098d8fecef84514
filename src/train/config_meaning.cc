// What a configuration means to data, optimizer and model.
#include <charconv>

#include "base/error.h"
#include "base/shape.h"
#include "train/config.h"

namespace convoy {
namespace {

constexpr int kMaxCropPadding = 64;

AugmentOptions parse_augment(std::string_view text) {
  AugmentOptions options;
  std::string_view rest = text;
  do {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (word == "flip") {
      options.flip = true;
      continue;
    }
    int padding = 0;
    const char* end = word.data() + word.size();
    const bool crop = word.starts_with("crop:") &&
                      std::from_chars(word.data() + 5, end, padding).ptr == end && padding >= 1 &&
                      padding <= kMaxCropPadding;
    if (!crop)
      throw ConfigError(
          "--augment must be auto, none, or any of crop:PADDING (1 to {}) and flip, not '{}'",
          kMaxCropPadding, text);
    options.crop_padding = padding;
  } while (!rest.empty());
  return options;
}

}  // namespace

void check_config(const TrainConfig& config) {
  if (config.model.empty())
    throw ConfigError("say which network to train: --model NAME (convoy zoo lists them)");
  if (config.data.empty())
    throw ConfigError(
        "say what to train on: --data mnist, fashion-mnist, cifar10, synthetic:CxHxW:CLASSES:COUNT "
        "or a folder");
  if (config.data_root.empty()) throw ConfigError("--data-root must not be empty");
  if (!config.input.empty()) parse_shape(config.input, "--input");
  if (config.nesterov && (config.optimizer != "sgd" || config.momentum == 0))
    throw ConfigError("--nesterov needs --optimizer sgd and a --momentum above 0");
  if (config.schedule == "step" && config.milestones.empty())
    throw ConfigError("--schedule step needs --milestones, as in --milestones 30,60,80");
  if (config.warmup_epochs > double(config.epochs))
    throw ConfigError("--warmup-epochs {} is more than --epochs {}", config.warmup_epochs,
                      config.epochs);
  augment_options(config);
}

OptimizerOptions optimizer_options(const TrainConfig& config) {
  return {.kind = config.optimizer,
          .momentum = float(config.momentum),
          .nesterov = config.nesterov,
          .weight_decay = float(config.weight_decay),
          .decay_all = config.decay_all,
          .beta1 = float(config.beta1),
          .beta2 = float(config.beta2),
          .epsilon = float(config.epsilon),
          .trust = float(config.trust)};
}

ScheduleOptions schedule_options(const TrainConfig& config) {
  const double scale =
      config.base_batch > 0 ? double(config.batch) / double(config.base_batch) : 1.0;
  return {.kind = config.schedule,
          .rate = config.lr * scale,
          .warmup_epochs = config.warmup_epochs,
          .milestones = config.milestones,
          .gamma = config.gamma,
          .final_rate = config.final_lr,
          .peak_at = config.peak_at};
}

AugmentOptions augment_options(const TrainConfig& config) {
  if (config.augment == "none") return {};
  if (config.augment != "auto") return parse_augment(config.augment);
  return config.data == "cifar10" ? AugmentOptions{.crop_padding = 4, .flip = true}
                                  : AugmentOptions{};
}

}  // namespace convoy
