#include "cli/config_flags.h"

#include <fmt/format.h>

namespace convoy {

void add_field_flag(CLI::App& command, const ConfigField& field, GivenFlags& given) {
  const std::string flag = field.flag();
  if (field.kind().empty()) {
    command
        .add_flag_callback(
            flag, [&] { given.emplace_back(&field, "true"); }, field.help)
        ->disable_flag_override();
    command
        .add_flag_callback(
            "--no-" + flag.substr(2), [&] { given.emplace_back(&field, "false"); }, "not " + flag)
        ->disable_flag_override();
    return;
  }
  std::string shown = print_field(TrainConfig{}, field);
  if (shown == "\"\"" || shown == "[]") shown.clear();
  command
      .add_option_function<std::string>(
          flag, [&](const std::string& text) { given.emplace_back(&field, text); }, field.help)
      ->type_name(field.choices.empty() ? field.kind()
                                        : fmt::format("{}", fmt::join(field.choices, "|")))
      ->default_str(shown);
}

}  // namespace convoy
