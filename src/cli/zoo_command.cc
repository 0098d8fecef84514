#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "nn/zoo.h"

namespace convoy {
namespace {

constexpr const char* kExamples = R"(Examples:
  convoy zoo
  convoy zoo --input 3x32x32 --classes 10
  convoy zoo --input 3x224x224 --classes 1000 --json)";

// What there is to say about one network at one input.
struct Entry {
  std::string name;
  Shape input;
  int classes = 0;
  std::size_t parameters = 0;
  double forward_flops = 0;
  int layers = 0;       // convolution and dense
  std::string error{};  // why the network cannot take the input; empty where it can
};

Entry examine(const std::string& name, Shape input, int classes) {
  Entry entry{.name = name, .input = input, .classes = classes};
  try {
    const Network net = make_network(name, input, classes);
    entry.parameters = net.parameter_count();
    entry.forward_flops = net.forward_flops();
    entry.layers = int(std::count_if(net.nodes().begin(), net.nodes().end(), [](const Node& node) {
      return std::holds_alternative<Convolution>(node.layer) ||
             std::holds_alternative<Dense>(node.layer);
    }));
  } catch (const ConfigError& error) {
    entry.error = error.what();
  }
  return entry;
}

// 1234567 -> "1,234,567"
std::string with_separators(std::size_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t at = 0; at < digits.size(); ++at) {
    if (at > 0 && (digits.size() - at) % 3 == 0) text += ',';
    text += digits[at];
  }
  return text;
}

void print_table(const std::vector<Entry>& entries) {
  constexpr double kMebi = 1 << 20;
  fmt::print("{:<13} {:>13} {:>8} {:>9} {:>7} {:>12} {:>8}  {}\n", "model", "parameters", "MiB f32",
             "GFLOP", "layers", "input", "classes", "studied on");
  for (const Entry& entry : entries) {
    if (!entry.error.empty()) {
      // The row's first column says the name already.
      const std::size_t begin = entry.error.starts_with(entry.name) ? entry.name.size() + 1 : 0;
      fmt::print("{:<13} {}\n", entry.name, entry.error.substr(begin));
      continue;
    }
    fmt::print("{:<13} {:>13} {:>8.1f} {:>9.4f} {:>7} {:>12} {:>8}  {}\n", entry.name,
               with_separators(entry.parameters), double(entry.parameters) * sizeof(float) / kMebi,
               entry.forward_flops / 1e9, entry.layers, entry.input.to_string(), entry.classes,
               zoo_studies(entry.name));
  }
  fmt::print(
      "\nGFLOP: one image forward, a multiply-add counted as one operation; a training step takes "
      "about three times\n"
      "as much. Layers: convolution and dense. Inputs up to 64 pixels get the small-image "
      "variant.\n");
}

void print_json(const std::vector<Entry>& entries) {
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const Entry& entry : entries) {
    nlohmann::ordered_json model = {{"name", entry.name}};
    if (entry.error.empty()) {
      model["parameters"] = entry.parameters;
      model["forward_flops"] = std::uint64_t(entry.forward_flops);
      model["layers"] = entry.layers;
    } else {
      model["error"] = entry.error;
    }
    model["input"] = entry.input.to_string();
    model["classes"] = entry.classes;
    models.push_back(std::move(model));
  }
  print_answer({{"models", models}});
}

}  // namespace

void add_zoo_command(CLI::App& app) {
  struct Options {
    std::string input;
    int classes = 0;
    bool json = false;
  };
  auto options =
      std::make_shared<Options>();  // outlives this function: CLI11 writes to it when it parses
  CLI::App* command = app.add_subcommand("zoo", "The networks: parameters, operations, layers");
  command
      ->add_option("--input", options->input, "Shape of one image; without it each network's own")
      ->type_name("CxHxW");
  command
      ->add_option("--classes", options->classes,
                   "Classes to tell apart; without it each network's own")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  command->add_flag("--json", options->json, "End with one JSON object on one line");
  command->footer(kExamples);
  command->callback([options, command] {
    Shape wanted;
    const bool has_input = command->count("--input") > 0;
    if (has_input) wanted = parse_shape(options->input, "--input");
    std::vector<Entry> entries;
    for (const std::string& name : zoo_names())
      entries.push_back(
          examine(name, has_input ? wanted : zoo_default_input(name),
                  options->classes > 0 ? options->classes : zoo_default_classes(name)));
    if (options->json)
      print_json(entries);
    else
      print_table(entries);
  });
}

}  // namespace convoy
