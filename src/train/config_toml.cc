// Configuration files.
#include "base/error.h"
#include "base/nearest.h"
#include "train/config.h"

// Where malformed input breaks an assumption of toml++ 3.3 it would meet undefined behaviour: it
// shall throw instead.
namespace convoy {
struct Malformed {};
inline constexpr void require(bool holds) {
  if (!holds) throw Malformed();
}
}  // namespace convoy
#undef NDEBUG
#define TOML_ASSERT(expr) ::convoy::require(static_cast<bool>(expr))
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace convoy {
namespace {

// A configuration is lines of `key = value`. The rest of TOML (tables, texts over several lines,
// letters beyond ASCII outside quotes) has no use here and is refused before toml++ sees it, whose
// version 3.3 meets undefined behaviour on malformed table headers and on some letters outside
// quotes.
class FormCheck {
 public:
  FormCheck(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  void run() {
    for (; at_ < text_.size(); ++at_) {
      const char letter = text_[at_];
      const bool line_end = letter == '\r' && text_.substr(at_ + 1, 1) == "\n";
      if ((static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) && letter != '\n' &&
          letter != '\t' && !line_end)
        refuse("control characters are not known here");
      if (letter == '\n')
        next_line();
      else if (quote_)
        in_quotes(letter);
      else if (!comment_)
        outside(letter);
    }
    next_line();
  }

 private:
  void next_line() {
    if (quote_) refuse("a text must end on the line on which it begins: a quote is missing");
    ++line_;
    comment_ = false;
    if (depth_ == 0) value_ = false;
  }
  void in_quotes(char letter) {
    if (letter == '\\' && quote_ == '"' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n')
      ++at_;
    else if (letter == quote_)
      quote_ = 0;
  }
  void outside(char letter) {
    if (letter == '"' || letter == '\'') {
      if (text_.substr(at_, 3) == std::string(3, letter))
        refuse("a text must stand on one line, in one pair of quotes");
      quote_ = letter;
    }
    if (letter == '#') comment_ = true;
    if (letter == '=') value_ = true;
    if (letter == '{' || letter == '}' || (letter == '[' && !value_))
      refuse("tables are not known here: write lines of key = value");
    if (letter == '[') ++depth_;
    if (letter == ']' && depth_ > 0) --depth_;
    if (static_cast<unsigned char>(letter) >= 0x80)
      refuse("letters beyond ASCII must stand in quotes");
  }
  [[noreturn]] void refuse(const char* why) const {
    throw ConfigError("{}:{}: {}", file_, line_, why);
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  char quote_ = 0;  // that ends the text we are in
  bool comment_ = false;
  bool value_ = false;  // after the line's '='
  int depth_ = 0;       // of arrays
};

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

toml::table parse(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw ConfigError("{}:{}: {}", file, error.source().begin.line, error.description());
  } catch (const Malformed&) {
    throw ConfigError("{}: this is not TOML: write lines of key = value", file);
  }
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
  if (text.size() > kMaxConfigBytes)
    throw ConfigError("{}: {} bytes are too many for a configuration", file, text.size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  FormCheck(text, file).run();
  const toml::table table = parse(text, file);
  std::vector<const ConfigField*> found;
  for (const auto& [key, node] : table) {
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
