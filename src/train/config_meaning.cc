// What a configuration means to data, optimizer and model.
#include <charconv>

#include "base/error.h"
#include "base/shape.h"
#include "sync/wire_code.h"
#include "train/config.h"

namespace convoy {
namespace {

constexpr int kMaxCropPadding = 64;

// The words between commas; an empty text has none, "a," has a second, empty one.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  if (text.empty()) return words;
  for (;;) {
    const std::size_t comma = text.find(',');
    words.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return words;
    text.remove_prefix(comma + 1);
  }
}

// 0 where the word is not PREFIX and a number of pixels.
int padding_after(std::string_view prefix, std::string_view word) {
  int padding = 0;
  const char* end = word.data() + word.size();
  const bool fits = word.starts_with(prefix) &&
                    std::from_chars(word.data() + prefix.size(), end, padding).ptr == end;
  return fits && padding >= 1 && padding <= kMaxCropPadding ? padding : 0;
}

AugmentOptions parse_augment(const std::string& text) {
  AugmentOptions options;
  const std::vector<std::string> words = words_of(text);
  bool known = !words.empty();
  for (const std::string& word : words) {
    const int black = padding_after("crop:", word), mirrored = padding_after("reflect:", word);
    if (word == "flip" || word == "alternate") {
      options.flip = true;
      options.alternate = options.alternate || word == "alternate";
    } else if (black + mirrored > 0 && options.crop_padding == 0) {
      options.crop_padding = black + mirrored;
      options.reflect = mirrored > 0;
    } else {
      known = false;
    }
  }
  if (!known)
    throw ConfigError(
        "--augment must be auto, none, or any of crop:PADDING or reflect:PADDING (1 to {}), flip "
        "and alternate, not '{}'",
        kMaxCropPadding, text);
  return options;
}

}  // namespace

namespace {

void check_servers(const TrainConfig& config) {
  if (config.sync != "ps") {
    if (config.servers > 0) throw ConfigError("--servers {} needs --sync ps", config.servers);
    if (config.guard) throw ConfigError("--guard needs --sync ps");
    if (config.policy != "sync") throw ConfigError("--policy {} needs --sync ps", config.policy);
    if (config.replicas > 0) throw ConfigError("--replicas {} needs --sync ps", config.replicas);
    return;
  }
  if (config.servers < 1) throw ConfigError("--sync ps needs --servers 1 or more");
  if (config.replicas > 1)
    throw ConfigError("--replicas {}: each server's parameters have one copy at most: use 1",
                      config.replicas);
  if (config.replicas > config.servers - 1)
    throw ConfigError("--replicas 1 needs another server for the copy: --servers 2 or more");
  const bool lockstep = config.policy == "sync" || config.policy == "ssp:0";
  if (config.invariant && !lockstep)
    throw ConfigError(
        "--invariant needs --policy sync, not {}: other policies depend on who comes first",
        config.policy);
  if (config.batch_norm == "sync" || config.read == "part" || config.balance != "equal")
    throw ConfigError(
        "--sync ps hands out work batch by batch: leave --batch-norm sync, --read part and "
        "--balance away");
  if (!config.lookahead.empty())
    throw ConfigError("--lookahead is for workers that move the weights themselves: leave it away");
  make_wire_code(config.wire);  // throws where it is none
}

}  // namespace

void check_config(const TrainConfig& config) {
  if (!config.trace.empty() && config.store == "none")
    throw ConfigError("--trace needs the run store: leave --store none away");
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
  if (!config.init.empty() && !config.start.empty())
    throw ConfigError("--init and --start exclude each other: both say what weights start as");
  if (config.invariant && config.batch_norm == "sync")
    throw ConfigError(
        "--invariant and --batch-norm sync exclude each other: shards of a batch have "
        "their own statistics");
  if (config.read == "part" && (config.invariant || config.balance != "equal"))
    throw ConfigError(
        "--read part gives every worker the same number of samples: leave --invariant and "
        "--balance away");
  if (config.invariant && config.wire != "f32")
    throw ConfigError(
        "--invariant and --wire {} exclude each other: its sums are exact, of all bits",
        config.wire);
  check_servers(config);
  augment_options(config);
  start_options(config);
  lookahead_options(config, 0);
}

LookaheadOptions lookahead_options(const TrainConfig& config, std::int64_t updates) {
  LookaheadOptions options = parse_lookahead(config.lookahead, "--lookahead");
  options.updates = updates;
  return options;
}

OptimizerOptions optimizer_options(const TrainConfig& config) {
  return {.kind = config.optimizer,
          .momentum = float(config.momentum),
          .nesterov = config.nesterov,
          .weight_decay = float(config.weight_decay),
          .decay_all = config.decay_all,
          .bias_rate = float(config.bias_rate),
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

StartOptions start_options(const TrainConfig& config) {
  StartOptions options;
  for (const std::string& word : words_of(config.start)) {
    if (word == "whiten")
      options.whiten = true;
    else if (word == "identity")
      options.identity = true;
    else
      throw ConfigError("--start must be any of whiten and identity, not '{}'", config.start);
  }
  return options;
}

std::vector<std::string> frozen_layers(const TrainConfig& config) {
  return words_of(config.freeze);
}

}  // namespace convoy
