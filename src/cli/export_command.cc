// convoy export: a trained network for other programs.
#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/config_flags.h"
#include "cli/saved_weights.h"
#include "nn/checkpoint.h"
#include "nn/model.h"
#include "nn/onnx.h"
#include "nn/zoo.h"

namespace convoy {
namespace {

constexpr const char* kExamples = R"(Examples:
  convoy export runs/RUN --onnx network.onnx
  convoy export resnet18.safetensors --model resnet18 --input 3x224x224 --classes 1000 --onnx resnet18.onnx)";

constexpr const char* kShared[] = {"model", "input", "classes"};

struct Arguments {
  std::string checkpoint;
  std::string onnx;
  bool json = false;
  GivenFlags flags;
};

void run_export(const Arguments& arguments) {
  TrainConfig config;
  for (const auto& [field, text] : arguments.flags) set_from_text(config, *field, text);
  const std::filesystem::path path = weights_at(arguments.checkpoint);
  complete_from(config, path);
  const Shape input =
      config.input.empty() ? zoo_default_input(config.model) : parse_shape(config.input, "--input");
  const int classes = config.classes > 0 ? int(config.classes) : zoo_default_classes(config.model);
  Model model(make_network(config.model, input, classes), {.batch = 1});
  load_weights(path, model.network(), model.parameters(), LoadMode::strict);
  const std::string bytes = onnx_model(model.network(), model.parameters());
  write_file_atomically(arguments.onnx, bytes);
  if (arguments.json)
    print_answer({{"onnx", arguments.onnx},
                  {"bytes", bytes.size()},
                  {"model", config.model},
                  {"input", input.to_string()},
                  {"classes", classes},
                  {"weights_sha256", model.parameters().sha256()}});
  else
    tell(stdout, fmt::format("{}: {} for normalised images of {}, {} classes\n", arguments.onnx,
                             config.model, input.to_string(), classes));
}

}  // namespace

void add_export_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("export", "Write a trained network for other programs");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("checkpoint", arguments->checkpoint, "a file of weights, or a run's folder")
      ->required();
  command->add_option("--onnx", arguments->onnx, "file to write, in ONNX format (opset 13)")
      ->required()
      ->type_name("FILE");
  command->add_flag("--json", arguments->json,
                    "end standard output with the result as one JSON object");
  for (const ConfigField& field : config_fields())
    if (std::find(std::begin(kShared), std::end(kShared), field.name) != std::end(kShared))
      add_field_flag(*command, field, arguments->flags);
  command->footer(kExamples);
  command->callback([arguments] { run_export(*arguments); });
}

}  // namespace convoy
