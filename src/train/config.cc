#include "train/config.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/nearest.h"

namespace convoy {
namespace {

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
  if (kind == "INT" && read_number(text, number) && std::abs(number) <= kLargestInteger &&
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

void set_field(TrainConfig& config, const ConfigField& field, const ConfigValue& value,
               const std::string& where) {
  std::visit(Setter{config, field, value, where}, field.member);
}

void set_from_text(TrainConfig& config, const ConfigField& field, const std::string& text) {
  set_field(config, field, value_from_text(field, text), field.flag());
}

}  // namespace convoy
