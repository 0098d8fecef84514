// Configuration files.
#include <cmath>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/error.h"
#include "base/nearest.h"
#include "train/config.h"

namespace convoy {
namespace {

// Longer files are no configurations; the bound keeps hostile ones cheap.
constexpr std::size_t kMaxBytes = 1 << 20;

// toml++ 3.3 meets undefined behaviour where a letter beyond ASCII stands outside quotes and
// comments, and no key or value of ours has one there. Texts over several lines, which would make
// "outside" hard to tell, have no use here.
void check_letters(std::string_view text, const std::string& file) {
  int line = 1;
  char quote = 0;  // that ends the text we are in
  bool comment = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '\n') {
      ++line;
      quote = 0;
      comment = false;
    } else if (comment) {
      continue;
    } else if (quote) {
      if (letter == '\\' && quote == '"' && i + 1 < text.size() && text[i + 1] != '\n')
        ++i;
      else if (letter == quote)
        quote = 0;
    } else if (letter == '"' || letter == '\'') {
      if (text.substr(i, 3) == std::string(3, letter))
        throw ConfigError("{}:{}: a text must stand on one line, in one pair of quotes", file,
                          line);
      quote = letter;
    } else if (letter == '#') {
      comment = true;
    } else if (static_cast<unsigned char>(letter) >= 0x80) {
      throw ConfigError("{}:{}: letters beyond ASCII must stand in quotes", file, line);
    }
  }
}

const char* kind_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::date:
      return "a date";
    case toml::node_type::time:
      return "a time";
    case toml::node_type::date_time:
      return "a date and time";
    default:
      return "a value of another kind";
  }
}

std::vector<double> numbers(const toml::array& array, const std::string& where) {
  std::vector<double> list;
  for (const toml::node& element : array) {
    if (!element.is_number()) throw ConfigError("{} must be a list of numbers", where);
    list.push_back(element.value_or(0.0));
  }
  return list;
}

ConfigValue value_of(const toml::node& node, const std::string& where) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* array = node.as_array()) return numbers(*array, where);
  throw ConfigError("{} must be a plain value, not {}", where, kind_name(node));
}

const ConfigField& field_named(std::string_view key, const std::string& place) {
  std::vector<std::string> names;
  for (const ConfigField& field : config_fields()) {
    if (field.name == key) return field;
    names.push_back(field.name);
  }
  throw ConfigError("{}: unknown key '{}': did you mean {}?", place, key,
                    nearest(key.substr(0, 100), names));
}

struct Printer {
  const TrainConfig& config;
  // JSON's escapes are TOML's, but for DEL.
  std::string operator()(std::string TrainConfig::*member) const {
    std::string quoted;
    for (char letter : nlohmann::json(config.*member)
                           .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
      quoted += letter == '\x7f' ? std::string("\\u007F") : std::string(1, letter);
    return quoted;
  }
  std::string operator()(std::int64_t TrainConfig::*member) const {
    return fmt::format("{}", config.*member);
  }
  std::string operator()(double TrainConfig::*member) const {
    return fmt::format("{}", config.*member);
  }
  std::string operator()(bool TrainConfig::*member) const {
    return config.*member ? "true" : "false";
  }
  std::string operator()(std::vector<double> TrainConfig::*member) const {
    return fmt::format("[{}]", fmt::join(config.*member, ", "));
  }
};

}  // namespace

std::vector<const ConfigField*> read_toml(TrainConfig& config, std::string_view text,
                                          const std::string& file) {
  if (text.size() > kMaxBytes)
    throw ConfigError("{}: {} bytes are too many for a configuration", file, text.size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  check_letters(text, file);
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    throw ConfigError("{}:{}: {}", file, error.source().begin.line, error.description());
  }
  std::vector<const ConfigField*> found;
  for (const auto& [key, node] : parsed.table()) {
    const std::string place = fmt::format("{}:{}", file, key.source().begin.line);
    const ConfigField& field = field_named(key.str(), place);
    const std::string where = fmt::format("{}: {}", place, field.name);
    set_field(config, field, value_of(node, where), where);
    found.push_back(&field);
  }
  return found;
}

std::string print_field(const TrainConfig& config, const ConfigField& field) {
  return std::visit(Printer{config}, field.member);
}

std::string to_toml(const TrainConfig& config) {
  std::string text;
  for (const ConfigField& field : config_fields())
    text += fmt::format("{} = {}\n", field.name, print_field(config, field));
  return text;
}

nlohmann::json to_json(const TrainConfig& config) {
  nlohmann::json object = nlohmann::json::object();
  for (const ConfigField& field : config_fields())
    object[field.name] =
        std::visit([&](auto member) { return nlohmann::json(config.*member); }, field.member);
  return object;
}

}  // namespace convoy
