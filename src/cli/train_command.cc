// convoy train: trains a network, from flags or a file.
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/config_flags.h"
#include "train/run.h"

namespace convoy {
namespace {

constexpr const char* kExamples = R"(Examples:
  convoy train --model mnist_cnn --data mnist --optimizer adam --lr 0.001 --epochs 5
  convoy train --config experiments/cifar10-resnet18.toml --epochs 20   (flags win)
  convoy train --resume runs/RUN                                        (goes on with the same bits)
  convoy train --model resnet18 --data photos/ --init resnet18.safetensors --input 3x224x224)";

struct Arguments {
  std::string config_file;
  std::string resume;
  bool json = false;
  bool print_config = false;
  GivenFlags flags;
};

TrainRequest make_request(const Arguments& arguments) {
  TrainRequest request{.config = {}, .given = {}, .resume = arguments.resume};
  if (!arguments.config_file.empty()) {
    const auto bytes = read_file(arguments.config_file, kMaxConfigBytes);
    request.given =
        read_toml(request.config, {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                  arguments.config_file);
  }
  for (const auto& [field, text] : arguments.flags) {
    set_from_text(request.config, *field, text);
    request.given.push_back(field);
  }
  return request;
}

void run_train(const Arguments& arguments) {
  const TrainRequest request = make_request(arguments);
  if (arguments.print_config) {
    check_config(request.config);
    fmt::print("{}", to_toml(request.config));
    return;
  }
  const TrainResult result = train(request, arguments.json ? stderr : stdout);
  if (!result.finished) {
    tell(stderr, fmt::format("convoy: stopped and saved; go on with: convoy train --resume {}\n",
                             result.folder.string()));
    throw Interrupted();
  }
  if (arguments.json) print_answer(result.answer);
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train a network");
  const auto arguments = std::make_shared<Arguments>();  // lives as long as the callback
  command
      ->add_option("--config", arguments->config_file,
                   "TOML file with any of the settings below; flags win")
      ->type_name("FILE");
  command->add_option("--resume", arguments->resume, "go on with a run, or from a checkpoint")
      ->type_name("DIR|FILE");
  command->add_flag("--json", arguments->json,
                    "end standard output with the result as one JSON object");
  command->add_flag("--print-config", arguments->print_config,
                    "print the configuration as TOML, and do no more");
  for (const ConfigField& field : config_fields())
    add_field_flag(*command, field, arguments->flags);
  command->footer(kExamples);
  command->callback([arguments] { run_train(*arguments); });
}

}  // namespace convoy
