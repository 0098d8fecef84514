// The hosts of a job: what a hosts file says, and which rank runs where.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy {

struct HostEntry {
  std::string name;
  int slots = 1;                   // ranks that it takes
  std::string address = {};        // how the other hosts reach it; empty: found there
  std::vector<std::string> agent;  // the command that runs another there; empty: ssh NAME
};

// One host a line: `name [slots=N] [address=A] [agent="COMMAND"]`; # begins a comment. Throws
// ConfigError that names the file, the line and the field.
std::vector<HostEntry> read_hosts(const std::filesystem::path& file);
std::vector<HostEntry> parse_hosts(std::string_view text, const std::string& file);

// Words separated by blanks; quotes, single or double, keep blanks in a word. Throws ConfigError
// where a quote does not end.
std::vector<std::string> split_words(std::string_view text);

// A command template as words; {} stands for the name of the host.
std::vector<std::string> agent_command(std::string_view pattern, const std::string& host);

// The host of every rank, as a place in `hosts`: each host in turn takes as many as it has slots.
// Throws ConfigError where the slots are too few.
std::vector<int> place_ranks(std::span<const HostEntry> hosts, int size);

// The same where the last `servers` ranks are servers, of which `place` says where they are:
//   apart     behind the workers, as place_ranks() has it
//   spread    one host after the other, as long as they have slots; the first rank keeps one of the
//             first host. Also if it is empty.
//   0,0,1     on these hosts, one number each, from 0
// Workers take the slots that are left, each host in turn. Throws ConfigError.
std::vector<int> place_servers(std::span<const HostEntry> hosts, int size, int servers,
                               const std::string& place);

// The hosts that a text like 0,0,1 says for so many servers. Throws ConfigError.
std::vector<int> parse_places(const std::string& place, int servers);

}  // namespace convoy
