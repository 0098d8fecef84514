#include "world/launch/hosts.h"

#include <charconv>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/file.h"

namespace convoy {
namespace {

constexpr std::size_t kLargestFile = 1 << 20;
constexpr int kMostSlots = 1024;

// The part of a line before a # that stands outside of quotes.
std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote ? line[i] == quote : line[i] == '"' || line[i] == '\'')
      quote = quote ? 0 : line[i];
    else if (!quote && line[i] == '#')
      return line.substr(0, i);
  }
  return line;
}

int parse_slots(std::string_view text) {
  int slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error != std::errc{} || end != text.data() + text.size() || slots < 1 || slots > kMostSlots)
    throw ConfigError("slots={} must be a whole number from 1 to {}", text, kMostSlots);
  return slots;
}

void set_field(HostEntry& host, const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  if (equals == std::string::npos)
    throw ConfigError("'{}' is not of the form name=value (slots=, address=, agent=)", word);
  const std::string value = word.substr(equals + 1);
  if (value.empty()) throw ConfigError("{}= has no value", key);
  if (key == "slots")
    host.slots = parse_slots(value);
  else if (key == "address")
    host.address = value;
  else if (key == "agent")
    host.agent = agent_command(value, host.name);
  else
    throw ConfigError("unknown field {}= (known: slots=, address=, agent=)", key);
}

HostEntry parse_line(const std::vector<std::string>& words) {
  HostEntry host;
  host.name = words.front();
  if (host.name.find('=') != std::string::npos || host.name.starts_with('-'))
    throw ConfigError("a line begins with the name of the host, not with '{}'", host.name);
  for (std::size_t i = 1; i < words.size(); ++i) set_field(host, words[i]);
  return host;
}

}  // namespace

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (const char letter : text) {
    const bool blank = letter == ' ' || letter == '\t' || letter == '\r' || letter == '\n';
    if (!quote && blank) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (quote ? letter == quote : letter == '"' || letter == '\'')
      quote = quote ? 0 : letter;
    else
      words.back() += letter;
  }
  if (quote) throw ConfigError("the quote {} has no end", quote);
  return words;
}

std::vector<std::string> agent_command(std::string_view pattern, const std::string& host) {
  std::vector<std::string> words = split_words(pattern);
  if (words.empty()) throw ConfigError("the agent's command is empty");
  for (std::string& word : words)
    for (std::size_t at = word.find("{}"); at != std::string::npos;
         at = word.find("{}", at + host.size()))
      word.replace(at, 2, host);
  return words;
}

std::vector<HostEntry> parse_hosts(std::string_view text, const std::string& file) {
  std::vector<HostEntry> hosts;
  std::set<std::string> names;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = without_comment(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    try {
      const std::vector<std::string> words = split_words(line);
      if (words.empty()) continue;
      hosts.push_back(parse_line(words));
      if (!names.insert(hosts.back().name).second)
        throw ConfigError("host {} stands there twice: give it more slots= instead",
                          hosts.back().name);
    } catch (const ConfigError& error) {
      throw ConfigError("{}:{}: {}", file, number, error.what());
    }
  }
  if (hosts.empty()) throw ConfigError("{}: names no host: write one a line, `name slots=2`", file);
  return hosts;
}

std::vector<HostEntry> read_hosts(const std::filesystem::path& file) {
  const std::vector<std::uint8_t> bytes = read_file(file, kLargestFile);
  return parse_hosts({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.string());
}

std::vector<int> place_ranks(std::span<const HostEntry> hosts, int size) {
  std::vector<int> host_of;
  for (int host = 0; host < int(hosts.size()); ++host)
    for (int slot = 0; slot < hosts[host].slots && int(host_of.size()) < size; ++slot)
      host_of.push_back(host);
  if (int(host_of.size()) < size)
    throw ConfigError("-n {}: the hosts have {} slots in all: raise slots= or lower -n", size,
                      host_of.size());
  return host_of;
}

std::vector<int> parse_places(const std::string& place, int servers) {
  std::vector<int> chosen;
  const char* at = place.data();
  const char* const end = at + place.size();
  while (at < end) {
    int host = -1;
    const auto [after, error] = std::from_chars(at, end, host);
    if (error != std::errc{} || host < 0 || (after != end && *after != ',')) break;
    chosen.push_back(host);
    at = after == end ? end : after + 1;
  }
  if (at < end || int(chosen.size()) != servers)
    throw ConfigError(
        "--place {}: write apart, spread, or a host for each of the {} servers, as in 0,0,1", place,
        servers);
  return chosen;
}

namespace {

// The next host that has a slot to spare, from `host` on, round and round; -1: none has.
int next_with_room(std::span<const int> free, int host) {
  const int count = int(free.size());
  for (int step = 0; step < count; ++step) {
    const int next = (host + step) % count;
    if (free[std::size_t(next)] > (next == 0 ? 1 : 0)) return next;
  }
  return -1;
}

}  // namespace

std::vector<int> place_servers(std::span<const HostEntry> hosts, int size, int servers,
                               const std::string& place) {
  std::vector<int> host_of = place_ranks(hosts, size);
  if (place == "apart" || servers == 0) return host_of;
  std::vector<int> free, chosen;
  for (const HostEntry& host : hosts) free.push_back(host.slots);
  const bool spread = place.empty() || place == "spread";
  if (!spread) chosen = parse_places(place, servers);
  for (int server = 0; server < servers; ++server) {
    if (spread) {
      const int host = next_with_room(free, server == 0 ? 0 : chosen.back() + 1);
      if (host < 0) throw ConfigError("--servers {}: the hosts have no slots for them", servers);
      chosen.push_back(host);
    }
    const int host = chosen[std::size_t(server)];
    if (host >= int(hosts.size()))
      throw ConfigError("--place {}: there are hosts 0 to {}", place, hosts.size() - 1);
    if (--free[std::size_t(host)] < 0)
      throw ConfigError("--place {}: host {} ({}) has no slot for server {}: raise its slots=",
                        place, host, hosts[std::size_t(host)].name, server);
  }
  const auto workers = std::size_t(size - servers);
  host_of.clear();
  for (std::size_t host = 0; host < hosts.size(); ++host)
    for (; free[host] > 0 && host_of.size() < workers; --free[host]) host_of.push_back(int(host));
  host_of.insert(host_of.end(), chosen.begin(), chosen.end());
  return host_of;
}

}  // namespace convoy
