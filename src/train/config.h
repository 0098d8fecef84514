// What a training run is: every choice that flags, a TOML file or a checkpoint can make. One table
// of fields drives flags, files, errors, printing and storage; a new choice is a member here and a
// row there.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/loader.h"
#include "optim/lookahead.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/start.h"

namespace convoy {

struct TrainConfig {
  std::string model;
  std::string data;
  std::string data_root = "data";
  std::string input;         // CxHxW; empty: the data's
  std::int64_t classes = 0;  // 0: the data's
  std::int64_t limit = 0;
  std::string augment = "auto";

  std::int64_t batch = 128;
  std::int64_t epochs = 5;
  std::int64_t seed = 1;
  std::string optimizer = "sgd";
  double lr = 0.01;
  std::int64_t base_batch = 0;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  bool decay_all = false;
  double bias_rate = 1;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double trust = 0.001;
  std::string lookahead;
  std::string schedule = "cosine";
  double warmup_epochs = 0;
  std::vector<double> milestones;
  double gamma = 0.1;
  double final_lr = 0;
  double peak_at = 0.3;
  double label_smoothing = 0;

  std::string precision = "auto";
  std::int64_t threads = 0;
  std::int64_t loader_threads = 1;

  std::int64_t workers = 1;
  std::string sync = "allreduce";
  std::int64_t servers = 0;
  std::string policy = "sync";
  bool guard = false;
  std::int64_t replicas = 0;
  std::int64_t snapshot_every = 100;
  double slice_mib = 4;
  std::string place;
  std::string algorithm = "auto";
  std::string wire = "f32";
  std::string transport;
  std::string hosts;
  bool overlap = true;
  double bucket_mib = 0;
  std::string balance = "equal";
  std::string batch_norm = "local";
  std::string read = "whole";
  bool invariant = false;
  std::int64_t virtual_shards = 8;
  std::string world = "real";
  std::string cluster;

  std::string out;  // empty: runs/ID
  std::string store = "runs/convoy.db";
  std::string trace;
  std::string tensorboard;
  std::string mllog;
  std::int64_t keep = 2;
  std::int64_t checkpoint_every = 1;
  std::int64_t eval_every = 1;
  bool eval_flip = false;
  bool eval_shift = false;
  std::string init;
  std::string start;
  std::string freeze;

  bool operator==(const TrainConfig&) const = default;
};

// One row of the table. The flag of `weight_decay` is --weight-decay.
struct ConfigField {
  using Member =
      std::variant<std::string TrainConfig::*, std::int64_t TrainConfig::*, double TrainConfig::*,
                   bool TrainConfig::*, std::vector<double> TrainConfig::*>;
  std::string name;
  Member member;
  std::string help;
  double low = 0, high = 0;               // of numbers, both allowed
  std::vector<std::string> choices = {};  // of texts; empty: any
  bool may_change = false;                // on --resume

  std::string flag() const;
  std::string kind() const;  // "INT", "NUMBER", "TEXT", "LIST" or "" (a switch)
};

// 2^53: exact as a double, so that ranges are too.
inline constexpr double kLargestInteger = 9007199254740992.0;

const std::vector<ConfigField>& config_fields();

// A value as a flag or a file gives it.
using ConfigValue = std::variant<std::string, std::int64_t, double, bool, std::vector<double>>;

// Checks type and range. Throws ConfigError that begins with `where` ("--batch", "run.toml:3:
// batch").
void set_field(TrainConfig& config, const ConfigField& field, const ConfigValue& value,
               const std::string& where);
// The same from a flag's text.
void set_from_text(TrainConfig& config, const ConfigField& field, const std::string& text);

// Longer files are no configurations; the bound keeps hostile ones cheap.
constexpr std::size_t kMaxConfigBytes = 1 << 20;

// A file's lines of `key = value` (TOML without tables). Pure: any text gives entries or a
// ConfigError that names `file` and line.
struct ConfigEntry {
  std::string name;
  ConfigValue value;
  std::string place;  // "run.toml:3"
};
std::vector<ConfigEntry> read_entries(std::string_view text, const std::string& file);

// Reads TOML over `config`. Pure: any text gives a configuration or a ConfigError that names
// `file`, line and key. Returns the fields that were set.
std::vector<const ConfigField*> read_toml(TrainConfig& config, std::string_view text,
                                          const std::string& file);

// The whole configuration as TOML that read_toml reads back exactly, and as JSON for records.
std::string to_toml(const TrainConfig& config);
nlohmann::json to_json(const TrainConfig& config);
std::string print_field(const TrainConfig& config, const ConfigField& field);  // as TOML

// What cannot be said of one field alone: required fields, choices that exclude each other.
void check_config(const TrainConfig& config);

// The configuration in the words of the parts that carry it out.
OptimizerOptions optimizer_options(const TrainConfig& config);
LookaheadOptions lookahead_options(const TrainConfig& config, std::int64_t updates);
ScheduleOptions schedule_options(const TrainConfig& config);
AugmentOptions augment_options(const TrainConfig& config);
StartOptions start_options(const TrainConfig& config);
std::vector<std::string> frozen_layers(const TrainConfig& config);

}  // namespace convoy
