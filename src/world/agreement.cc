#include "world/agreement.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.h"
#include "base/file.h"

namespace convoy {
namespace {

using nlohmann::json;

constexpr Tag kAgreementTag = kLargestTag;
constexpr std::size_t kLargestMessage = 16 << 10;
constexpr std::size_t kShown = 2000;  // of the arguments; a digest stands for the rest

// The build id among the notes of a segment; empty where there is none.
std::string build_id_in(const char* notes, std::size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const std::size_t name = (note.n_namesz + 3) & ~3U, body = (note.n_descsz + 3) & ~3U;
    const std::size_t whole = sizeof note + name + body;
    if (whole > bytes) break;
    const char* text = notes + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID &&
        std::string_view(text, note.n_namesz) == std::string_view("GNU\0", 4)) {
      std::string id;
      for (std::size_t i = 0; i < note.n_descsz; ++i)
        id += fmt::format("{:02x}", static_cast<unsigned char>(text[name + i]));
      return id;
    }
    notes += whole;
    bytes -= whole;
  }
  return {};
}

// The program itself is the first that the loader names.
int look_at_program(dl_phdr_info* info, std::size_t, void* found) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
    auto& id = *static_cast<std::string*>(found);
    if (id.empty()) id = build_id_in(notes, part.p_memsz);
  }
  return 1;
}

std::string digest(const std::string& text) {
  Sha256 sha;
  sha.add(std::as_bytes(std::span(text)));
  return sha.hex();
}

std::string encoded(const Identity& own) {
  return json{{"build", own.build},
              {"arguments", own.arguments.substr(0, kShown)},
              {"digest", digest(own.arguments)},
              {"host", own.host}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

// How another rank differs from rank 0; empty: not at all.
std::string difference(const json& first, int rank, const std::string& text) {
  const json other = json::parse(text, nullptr, false);
  if (!other.is_object()) return fmt::format("rank {} says nothing readable about itself", rank);
  const auto field = [](const json& from, const char* name) { return from.value(name, "unknown"); };
  const std::string who = fmt::format("rank {} (host {})", rank, field(other, "host"));
  if (field(other, "build") != field(first, "build"))
    return fmt::format(
        "{} runs build {}, rank 0 (host {}) runs build {}: install the same program "
        "on all hosts",
        who, field(other, "build"), field(first, "host"), field(first, "build"));
  if (field(other, "digest") != field(first, "digest"))
    return fmt::format("{} runs with the arguments `{}`, rank 0 with `{}`: give all ranks the same",
                       who, field(other, "arguments"), field(first, "arguments"));
  return {};
}

std::string receive(Transport& transport, int from, double timeout_s) {
  std::string text(kLargestMessage, '\0');
  const Ticket ticket =
      transport.recv(from, kAgreementTag, std::as_writable_bytes(std::span(text)));
  text.resize(transport.wait(ticket, timeout_s).bytes);
  return text;
}

// Rank 0 hears all and answers all: an empty text where there is no difference.
std::string compare_all(Transport& transport, const std::string& own, double end_s) {
  const json first = json::parse(own);
  std::string verdict;
  for (int rank = 1; rank < transport.size(); ++rank) {
    const std::string found = difference(first, rank, receive(transport, rank, end_s - now_s()));
    if (verdict.empty()) verdict = found.substr(0, kLargestMessage);
  }
  std::vector<Ticket> answers;
  for (int rank = 1; rank < transport.size(); ++rank)
    answers.push_back(transport.send(rank, kAgreementTag, std::as_bytes(std::span(verdict))));
  for (const Ticket answer : answers) transport.wait(answer, end_s - now_s());
  return verdict;
}

}  // namespace

std::string program_build() {
  std::string id;
  ::dl_iterate_phdr(look_at_program, &id);
  return id.empty() ? "unknown" : id;
}

Identity identity_of_process(const std::string& host) {
  const std::vector<std::uint8_t> bytes = read_file("/proc/self/cmdline");
  const auto name_end = std::find(bytes.begin(), bytes.end(), 0);
  std::string arguments;
  if (name_end != bytes.end()) arguments.assign(name_end + 1, bytes.end());
  if (arguments.ends_with('\0')) arguments.pop_back();
  std::replace(arguments.begin(), arguments.end(), '\0', ' ');
  return {program_build(), arguments, host};
}

void agree(Transport& transport, const Identity& own, double timeout_s) {
  const double end_s = now_s() + timeout_s;
  const std::string text = encoded(own);
  std::string verdict;
  if (transport.rank() == 0) {
    verdict = compare_all(transport, text, end_s);
  } else {
    const Ticket sent = transport.send(0, kAgreementTag, std::as_bytes(std::span(text)));
    verdict = receive(transport, 0, end_s - now_s());
    transport.wait(sent, end_s - now_s());
  }
  if (verdict.empty()) return;
  transport.close(std::max(0.0, end_s - now_s()));
  throw ConfigError("{}", verdict);
}

}  // namespace convoy
