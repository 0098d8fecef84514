// Configuration files.
#include <cstdint>
#include <optional>

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

// The letter that begins at `at`, or nothing where the bytes are no UTF-8.
struct Letter {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};
std::optional<Letter> utf8_letter(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(at);
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return std::nullopt;
  std::uint32_t code = first & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xc0u) != 0x80u) return std::nullopt;
    code = code << 6 | (byte(at + i) & 0x3fu);
  }
  const std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (code < least[bytes] || code > 0x10ffff || surrogate) return std::nullopt;
  return Letter{code, bytes};
}

// A configuration is lines of `key = value`. The rest of TOML (tables, texts over several lines)
// has no use here and is refused before toml++ sees it, whose version 3.3 meets undefined behaviour
// on malformed table headers and on letters beyond ASCII in unexpected places. So it sees ASCII
// only: such letters become escapes in double quotes, are blotted out in comments, and are refused
// elsewhere.
class Gate {
 public:
  Gate(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::string pass() {
    for (; at_ < text_.size(); ++at_) {
      const char letter = text_[at_];
      check_control(letter);
      if (static_cast<unsigned char>(letter) >= 0x80) {
        beyond_ascii();
        continue;
      }
      passed_ += letter;
      if (letter == '\n')
        next_line();
      else if (quote_)
        in_quotes(letter);
      else if (!comment_)
        outside(letter);
    }
    next_line();
    return std::move(passed_);
  }

 private:
  void check_control(char letter) const {
    const bool line_end = letter == '\r' && text_.substr(at_ + 1, 1) == "\n";
    const bool control = static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
    if (control && letter != '\n' && letter != '\t' && !line_end)
      refuse("control characters are not known here");
  }
  void beyond_ascii() {
    const auto letter = utf8_letter(text_, at_);
    if (!letter) refuse("this is not UTF-8");
    if (comment_)
      passed_ += '?';
    else if (quote_ == '"')
      passed_ += fmt::format("\\U{:08X}", letter->code);
    else
      refuse("letters beyond ASCII must stand in double quotes");
    at_ += letter->bytes - 1;
  }
  void next_line() {
    if (quote_) refuse("a text must end on the line on which it begins: a quote is missing");
    ++line_;
    comment_ = false;
    if (depth_ == 0) value_ = false;
  }
  void in_quotes(char letter) {
    const bool escapes = letter == '\\' && quote_ == '"' && at_ + 1 < text_.size();
    const char next = escapes ? text_[at_ + 1] : 0;
    if (escapes && next >= 0x20 && next != 0x7f) {
      passed_ += next;
      ++at_;
    } else if (letter == quote_) {
      quote_ = 0;
    }
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
  }
  [[noreturn]] void refuse(const char* why) const {
    throw ConfigError("{}:{}: {}", file_, line_, why);
  }

  std::string_view text_;
  const std::string& file_;
  std::string passed_;
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

std::vector<ConfigEntry> read_entries(std::string_view text, const std::string& file) {
  if (text.size() > kMaxConfigBytes)
    throw ConfigError("{}: {} bytes are too many for a configuration", file, text.size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  const toml::table table = parse(Gate(text, file).pass(), file);
  std::vector<ConfigEntry> entries;
  for (const auto& [key, node] : table) {
    const std::string place = fmt::format("{}:{}", file, key.source().begin.line);
    const std::string name(key.str());
    entries.push_back({name, value_of(node, fmt::format("{}: {}", place, name)), place});
  }
  return entries;
}

std::vector<const ConfigField*> read_toml(TrainConfig& config, std::string_view text,
                                          const std::string& file) {
  std::vector<const ConfigField*> found;
  for (const ConfigEntry& entry : read_entries(text, file)) {
    const ConfigField& field = field_named(entry.name, entry.place);
    set_field(config, field, entry.value, fmt::format("{}: {}", entry.place, field.name));
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
