// convoy eval: the accuracy of saved weights on a data set.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/config_flags.h"
#include "cli/saved_weights.h"
#include "nn/checkpoint.h"
#include "train/evaluate.h"
#include "train/parts.h"
#include "train/records.h"

namespace convoy {
namespace {

constexpr const char* kExamples = R"(Examples:
  convoy eval runs/RUN --data mnist
  convoy eval runs/RUN/final.safetensors --data cifar10 --json
  convoy eval resnet18.safetensors --model resnet18 --data photos/ --input 3x224x224)";

// The settings that eval shares with train are kept in the same structure and checked by the same
// table.
struct Arguments {
  std::string checkpoint;
  bool json = false;
  GivenFlags flags;
};

constexpr const char* kShared[] = {"data",           "data_root", "model",     "input",
                                   "classes",        "batch",     "precision", "threads",
                                   "loader_threads", "eval_flip", "eval_shift"};

// Where the data do not fit what the user never wrote, says where it comes from.
DataSplit open_fitting(const TrainConfig& config, const TrainConfig& asked,
                       const std::filesystem::path& path) {
  try {
    return open_split(config);
  } catch (const ConfigError& error) {
    if (config == asked) throw;
    throw ConfigError("{} (--input and --classes as {} has them)", error.what(), path.string());
  }
}

nlohmann::json evaluate_weights(TrainConfig config, const std::filesystem::path& path) {
  const TrainConfig asked = config;
  complete_from(config, path);
  const DataSplit split = open_fitting(config, asked, path);
  const std::unique_ptr<Model> model = make_model(config, *split.test);
  load_weights(path, model->network(), model->parameters(), LoadMode::strict);
  Loader loader(*split.test, evaluation_loader(int(config.batch), int(config.loader_threads)));
  const double start_s = now_s();
  const Score score = evaluate(
      *model, loader, {.flip = config.eval_flip || config.eval_shift, .shift = config.eval_shift});
  const double seconds = now_s() - start_s;
  nlohmann::json answer = {{"test_accuracy", score.accuracy},
                           {"test_loss", score.loss},
                           {"samples", score.samples},
                           {"images_per_s", seconds > 0 ? double(score.samples) / seconds : 0.0},
                           {"wall_s", seconds},
                           {"model", config.model},
                           {"data", config.data},
                           {"checkpoint", path.string()},
                           {"weights_sha256", model->parameters().sha256()}};
  if (score.flip_accuracy) answer["test_accuracy_flip"] = *score.flip_accuracy;
  if (score.shift_accuracy) answer["test_accuracy_shift"] = *score.shift_accuracy;
  return answer;
}

void run_eval(const Arguments& arguments) {
  TrainConfig config;
  for (const auto& [field, text] : arguments.flags) set_from_text(config, *field, text);
  if (config.data.empty())
    throw ConfigError("say what to evaluate on: --data mnist, cifar10, a folder, ...");
  const nlohmann::json answer = evaluate_weights(config, weights_at(arguments.checkpoint));
  if (arguments.json) {
    print_answer(answer);
    return;
  }
  const auto number = [&](const char* name) { return answer.at(name).get<double>(); };
  std::vector<std::pair<std::string, std::string>> rows = {
      {"network", answer.at("model")},
      {"data", answer.at("data")},
      {"test accuracy", fmt::format("{:.2f} %", 100 * number("test_accuracy"))},
      {"test loss", fmt::format("{:.4f}", number("test_loss"))},
      {"samples", with_commas(std::uint64_t(number("samples")))},
      {"speed", fmt::format("{:.0f} images/s", number("images_per_s"))}};
  auto place = rows.begin() + 3;
  for (const auto& [field, label] : {std::pair("test_accuracy_flip", "  flips averaged"),
                                     {"test_accuracy_shift", "  and shifts"}})
    if (answer.contains(field))
      place = rows.insert(place, {label, fmt::format("{:.2f} %", 100 * number(field))}) + 1;
  fmt::print("{}", summary_table(rows));
}

}  // namespace

void add_eval_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("eval", "Evaluate saved weights on a test set");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("checkpoint", arguments->checkpoint, "a file of weights, or a run's folder")
      ->required();
  command->add_flag("--json", arguments->json,
                    "end standard output with the result as one JSON object");
  for (const ConfigField& field : config_fields())
    if (std::find(std::begin(kShared), std::end(kShared), field.name) != std::end(kShared))
      add_field_flag(*command, field, arguments->flags);
  command->footer(kExamples);
  command->callback([arguments] { run_eval(*arguments); });
}

}  // namespace convoy
