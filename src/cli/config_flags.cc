#include "cli/config_flags.h"

#include <fmt/format.h>

namespace convoy {

void add_field_flag(CLI::App& command, const ConfigField& field, GivenFlags& given) {
  const std::string flag = field.flag();
  if (field.kind().empty()) {
    command.add_flag_function(
        fmt::format("{},!--no-{}", flag, flag.substr(2)),
        [&](std::int64_t count) { given.emplace_back(&field, count > 0 ? "true" : "false"); },
        field.help);
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
