#include "train/config.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/nearest.h"

namespace convoy {
namespace {

constexpr double kBillion = 1e9;
constexpr double kMaxInt = 9007199254740992.0;  // 2^53: exact as a double, so that ranges are too

std::vector<ConfigField> make_fields() {
  using C = TrainConfig;
  return {
      {.name = "model", .member = &C::model, .help = "network, as `convoy zoo` lists them"},
      {.name = "data",
       .member = &C::data,
       .help = "mnist, fashion-mnist, cifar10, synthetic:CxHxW:CLASSES:COUNT or a folder with "
               "train/CLASS/*.jpg|png"},
      {.name = "data_root",
       .member = &C::data_root,
       .help = "where `convoy data get` put things",
       .may_change = true},
      {.name = "input",
       .member = &C::input,
       .help = "CxHxW that images of a folder are resized to"},
      {.name = "classes",
       .member = &C::classes,
       .help = "outputs of the network (0: the data's classes)",
       .high = 1e6},
      {.name = "limit",
       .member = &C::limit,
       .help = "only the first N training samples (0: all)",
       .high = kMaxInt},
      {.name = "augment",
       .member = &C::augment,
       .help =
           "none, or any of crop:PADDING (black), reflect:PADDING (mirrored edges), flip, "
           "alternate (flip every other epoch) (auto: crop:4,flip for cifar10, none otherwise)"},
      {.name = "batch", .member = &C::batch, .help = "samples per step", .low = 1, .high = 1 << 20},
      {.name = "epochs",
       .member = &C::epochs,
       .help = "passes over the training data",
       .low = 1,
       .high = 1e6,
       .may_change = true},
      {.name = "seed",
       .member = &C::seed,
       .help = "of weights, shuffling, augmentation and dropout",
       .high = kMaxInt},
      {.name = "optimizer",
       .member = &C::optimizer,
       .help = "rule that moves the weights",
       .choices = {"sgd", "adam", "lars"}},
      {.name = "lr", .member = &C::lr, .help = "learning rate at its peak", .high = 1e6},
      {.name = "base_batch",
       .member = &C::base_batch,
       .help = "scale lr by batch / base_batch (0: off)",
       .high = kBillion},
      {.name = "momentum", .member = &C::momentum, .help = "of sgd and lars", .high = 1},
      {.name = "nesterov", .member = &C::nesterov, .help = "Nesterov's momentum (sgd)"},
      {.name = "weight_decay",
       .member = &C::weight_decay,
       .help = "added to the gradient, times the weight",
       .high = 1e3},
      {.name = "decay_all", .member = &C::decay_all, .help = "decay batch norm and biases too"},
      {.name = "bias_rate",
       .member = &C::bias_rate,
       .help = "factor of lr for biases, batch norm's included",
       .low = 1e-6,
       .high = 1e6},
      {.name = "beta1", .member = &C::beta1, .help = "of adam", .high = 1},
      {.name = "beta2", .member = &C::beta2, .help = "of adam", .high = 1},
      {.name = "epsilon", .member = &C::epsilon, .help = "of adam", .high = 1},
      {.name = "trust", .member = &C::trust, .help = "of lars", .high = 1e3},
      {.name = "lookahead",
       .member = &C::lookahead,
       .help = "UPDATES:KEEP, as 5:0.95: every so many updates go back to a slow average of the "
               "weights, which keeps that share of itself per update in the end"},
      {.name = "schedule",
       .member = &C::schedule,
       .help = "of the learning rate",
       .choices = {"constant", "step", "cosine", "one-cycle", "triangle"}},
      {.name = "warmup_epochs",
       .member = &C::warmup_epochs,
       .help = "linear start of the learning rate",
       .high = 1e6},
      {.name = "milestones",
       .member = &C::milestones,
       .help = "epochs after which step multiplies by gamma, as 30,60,80",
       .high = 1e6},
      {.name = "gamma", .member = &C::gamma, .help = "factor of step", .high = 1e3},
      {.name = "final_lr",
       .member = &C::final_lr,
       .help = "where cosine, one-cycle and triangle end",
       .high = 1e6},
      {.name = "peak_at",
       .member = &C::peak_at,
       .help = "share of training at which one-cycle and triangle peak",
       .high = 1},
      {.name = "label_smoothing",
       .member = &C::label_smoothing,
       .help = "share of the label given to all classes",
       .high = 0.99},
      {.name = "precision",
       .member = &C::precision,
       .help = "of activations",
       .choices = {"auto", "f32", "bf16"}},
      {.name = "threads",
       .member = &C::threads,
       .help = "of the engine (0: all cores)",
       .high = 4096,
       .may_change = true},
      {.name = "loader_threads",
       .member = &C::loader_threads,
       .help = "that prepare batches",
       .low = 1,
       .high = 256,
       .may_change = true},
      {.name = "workers",
       .member = &C::workers,
       .help = "that share every batch (in a job: its ranks)",
       .low = 1,
       .high = 1024,
       .may_change = true},
      {.name = "sync",
       .member = &C::sync,
       .help = "how workers come to the same weights",
       .choices = {"allreduce", "ps"},
       .may_change = true},
      {.name = "servers",
       .member = &C::servers,
       .help = "parameter servers, besides the workers (--sync ps)",
       .high = 512,
       .may_change = true},
      {.name = "policy",
       .member = &C::policy,
       .help = "when servers move weights: sync, backup:K, async, ssp:S, staleness_aware or dc:L",
       .may_change = true},
      {.name = "guard",
       .member = &C::guard,
       .help = "when the loss diverges: back to good weights, from async to ssp, then to sync",
       .may_change = true},
      {.name = "replicas",
       .member = &C::replicas,
       .help = "copies of every server's parameters that answers wait for: 0 or 1",
       .high = 512,
       .may_change = true},
      {.name = "snapshot_every",
       .member = &C::snapshot_every,
       .help = "updates after which the next server gets a copy of them anyway (0: never)",
       .high = 1'000'000'000,
       .may_change = true},
      {.name = "slice_mib",
       .member = &C::slice_mib,
       .help = "MiB that travel together between a worker and a server, at most",
       .low = 1.0 / 1024,
       .high = 1024,
       .may_change = true},
      {.name = "place",
       .member = &C::place,
       .help =
           "hosts of the servers: apart (behind the workers, simulated: their own), spread (one "
           "host after the other), or numbers as 0,0,1",
       .may_change = true},
      {.name = "algorithm",
       .member = &C::algorithm,
       .help = "of all-reduce: auto, or one that `convoy bench allreduce` names",
       .may_change = true},
      {.name = "wire",
       .member = &C::wire,
       .help = "gradients between workers: f32, bf16, topk:SHARE or 1bit",
       .may_change = true},
      {.name = "transport",
       .member = &C::transport,
       .help = "between workers started here: inproc (threads), shm or zmq; empty: chosen",
       .choices = {"", "inproc", "shm", "zmq", "mpi"},
       .may_change = true},
      {.name = "hosts",
       .member = &C::hosts,
       .help = "file that names the machines for the workers, as for `convoy launch`",
       .may_change = true},
      {.name = "overlap",
       .member = &C::overlap,
       .help = "send gradients while backward and the next forward run",
       .may_change = true},
      {.name = "bucket_mib",
       .member = &C::bucket_mib,
       .help = "MiB of gradients that travel together (0: found in the first steps)",
       .high = 1e6,
       .may_change = true},
      {.name = "balance",
       .member = &C::balance,
       .help = "shares of a batch: equal, auto (by measured speed), or weights as 3:1:1",
       .may_change = true},
      {.name = "batch_norm",
       .member = &C::batch_norm,
       .help = "statistics of each worker's samples, or of all",
       .choices = {"local", "sync"}},
      {.name = "read",
       .member = &C::read,
       .help = "training data: each worker all of it, or only a part, whose samples it keeps",
       .choices = {"whole", "part"}},
      {.name = "invariant",
       .member = &C::invariant,
       .help = "weights that are the same, bit for bit, for any number of workers"},
      {.name = "virtual_shards",
       .member = &C::virtual_shards,
       .help = "parts of a batch that invariant keeps apart",
       .low = 1,
       .high = 1024},
      {.name = "world",
       .member = &C::world,
       .help = "real, or sim: workers of a simulated cluster, with real gradients",
       .choices = {"real", "sim"},
       .may_change = true},
      {.name = "cluster",
       .member = &C::cluster,
       .help = "file that describes the simulated cluster",
       .may_change = true},
      {.name = "out",
       .member = &C::out,
       .help = "folder that the run writes to (default runs/ID)",
       .may_change = true},
      {.name = "store",
       .member = &C::store,
       .help = "run store that the run is recorded in (none: not at all)",
       .may_change = true},
      {.name = "trace",
       .member = &C::trace,
       .help = "file for some steps in detail, in Chrome's and Perfetto's format",
       .may_change = true},
      {.name = "tensorboard",
       .member = &C::tensorboard,
       .help = "folder for TensorBoard's event files",
       .may_change = true},
      {.name = "mllog",
       .member = &C::mllog,
       .help = "file for MLPerf's log lines",
       .may_change = true},
      {.name = "keep",
       .member = &C::keep,
       .help = "checkpoints to keep (0: all)",
       .high = kBillion,
       .may_change = true},
      {.name = "checkpoint_every",
       .member = &C::checkpoint_every,
       .help = "epochs between checkpoints (0: only at the end)",
       .high = kBillion,
       .may_change = true},
      {.name = "eval_every",
       .member = &C::eval_every,
       .help = "epochs between evaluations (0: only at the end)",
       .high = kBillion,
       .may_change = true},
      {.name = "eval_flip",
       .member = &C::eval_flip,
       .help = "also test with the outputs for each image and its mirror image averaged",
       .may_change = true},
      {.name = "eval_shift",
       .member = &C::eval_shift,
       .help = "the same, and with the outputs for shifts by a pixel averaged too",
       .may_change = true},
      {.name = "init", .member = &C::init, .help = "start from these weights (safetensors)"},
      {.name = "start",
       .member = &C::start,
       .help = "first weights that are not random, any of whiten (the first convolution whitens "
               "patches of training images), identity (3x3 convolutions begin as the identity)"},
      {.name = "freeze",
       .member = &C::freeze,
       .help = "layers that are not trained, as conv1,layer1 (those whose names begin so)"},
  };
}

std::string describe(const ConfigValue& value) {
  if (auto* text = std::get_if<std::string>(&value)) return fmt::format("'{}'", *text);
  if (auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
  if (auto* number = std::get_if<double>(&value)) return fmt::format("{:#}", *number);
  if (auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return fmt::format("[{}]", fmt::join(std::get<std::vector<double>>(value), ", "));
}

std::string range_text(const ConfigField& field) {
  return fmt::format("from {} to {}", field.low, field.high);
}

[[noreturn]] void refuse(const std::string& where, const std::string& expected,
                         const ConfigValue& found) {
  throw ConfigError("{} must be {}, not {}", where, expected, describe(found));
}

// Written so that a NaN is outside every range.
void check_range(const ConfigField& field, double number, const std::string& expected,
                 const ConfigValue& value, const std::string& where) {
  if (!(number >= field.low && number <= field.high))
    refuse(where, fmt::format("{} {}", expected, range_text(field)), value);
}

struct Setter {
  TrainConfig& config;
  const ConfigField& field;
  const ConfigValue& value;
  const std::string& where;

  void operator()(std::string TrainConfig::*member) const {
    const auto* text = std::get_if<std::string>(&value);
    if (!text) refuse(where, "a text", value);
    if (text->find('\0') != std::string::npos)
      throw ConfigError("{} must not contain a NUL", where);
    if (!field.choices.empty() &&
        std::find(field.choices.begin(), field.choices.end(), *text) == field.choices.end())
      throw ConfigError("{} must be one of {}, not '{}': did you mean {}?", where,
                        fmt::join(field.choices, ", "), *text, nearest(*text, field.choices));
    config.*member = *text;
  }
  void operator()(std::int64_t TrainConfig::*member) const {
    const auto* number = std::get_if<std::int64_t>(&value);
    if (!number) refuse(where, "a whole number " + range_text(field), value);
    check_range(field, double(*number), "a whole number", value, where);
    config.*member = *number;
  }
  void operator()(double TrainConfig::*member) const {
    const auto* whole = std::get_if<std::int64_t>(&value);
    const auto* number = std::get_if<double>(&value);
    if (!whole && !number) refuse(where, "a number " + range_text(field), value);
    const double found = whole ? double(*whole) : *number;
    check_range(field, found, "a number", value, where);
    config.*member = found;
  }
  void operator()(bool TrainConfig::*member) const {
    const auto* flag = std::get_if<bool>(&value);
    if (!flag) refuse(where, "true or false", value);
    config.*member = *flag;
  }
  void operator()(std::vector<double> TrainConfig::*member) const {
    const auto* list = std::get_if<std::vector<double>>(&value);
    if (!list) refuse(where, "a list of numbers", value);
    for (double number : *list) check_range(field, number, "a list of numbers", value, where);
    if (!std::is_sorted(list->begin(), list->end()))
      refuse(where, "a list of rising numbers", value);
    config.*member = *list;
  }
};

// The whole text as a number, or nothing.
template <typename Number>
bool read_number(std::string_view text, Number& number) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

ConfigValue value_from_text(const ConfigField& field, const std::string& text) {
  std::int64_t whole = 0;
  double number = 0;
  const std::string kind = field.kind();
  if (kind == "INT" && read_number(text, whole)) return whole;
  if (kind == "INT" && read_number(text, number) && std::abs(number) <= kMaxInt &&
      number == std::floor(number))
    return std::int64_t(number);  // 1e9 is a whole number too
  if (kind == "NUMBER" && read_number(text, number)) return number;
  if (kind.empty() && (text == "true" || text == "false")) return text == "true";
  if (kind == "LIST") {
    std::vector<double> list;
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      if (!read_number(rest.substr(0, comma), number)) return text;
      list.push_back(number);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return list;
  }
  return text;  // of a text field, or of another kind: refused by its setter
}

}  // namespace

std::string ConfigField::flag() const {
  std::string text = "--" + name;
  for (char& letter : text)
    if (letter == '_') letter = '-';
  return text;
}

std::string ConfigField::kind() const {
  constexpr const char* kKinds[] = {"TEXT", "INT", "NUMBER", "", "LIST"};
  return kKinds[member.index()];
}

const std::vector<ConfigField>& config_fields() {
  static const std::vector<ConfigField> fields = make_fields();
  return fields;
}

void set_field(TrainConfig& config, const ConfigField& field, const ConfigValue& value,
               const std::string& where) {
  std::visit(Setter{config, field, value, where}, field.member);
}

void set_from_text(TrainConfig& config, const ConfigField& field, const std::string& text) {
  set_field(config, field, value_from_text(field, text), field.flag());
}

}  // namespace convoy
