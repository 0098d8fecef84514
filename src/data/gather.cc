#include "data/gather.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "data/child.h"
#include "data/cifar_png.h"
#include "data/gzip.h"
#include "data/tar.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

constexpr int kSearchDepth = 6;
constexpr std::size_t kMaxSearched = 100'000;
constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t(256) << 20;
constexpr std::size_t kLabelsPerPicture = 10000;
constexpr double kUnpackDeadline_s = 120;

bool ends_with(const std::string& text, std::string_view end) { return text.ends_with(end); }

bool is_archive_name(const std::string& name) {
  return ends_with(name, ".tgz") || ends_with(name, ".tar.gz") || ends_with(name, ".tar");
}

// The catalogue's name for a file: without folders and .gz; some copies of MNIST have a dot before
// "idx".
std::string plain_name(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  if (ends_with(name, ".gz")) name.resize(name.size() - 3);
  if (const std::size_t dot = name.find(".idx"); dot != std::string::npos) name[dot] = '-';
  return name;
}

// data_batch_1.png becomes data_batch_1.bin.
std::string picture_target(const std::string& path) {
  const fs::path name = fs::path(path).filename();
  return name.extension() == ".png" ? name.stem().string() + ".bin" : std::string();
}

// The package spells it "lables".
bool is_labels(const std::string& path, const char* part) {
  const std::string name = fs::path(path).filename().string();
  return name == std::string(part) + "_lables.json" || name == std::string(part) + "_labels.json";
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error),
      end;
  for (; !error && it != end; it.increment(error)) {
    if (it.depth() >= kSearchDepth) it.disable_recursion_pending();
    std::error_code gone;
    if (it->is_regular_file(gone)) files.push_back(it->path());
    if (files.size() > kMaxSearched)
      throw DataError("{}: more than {} files; give the folder that holds the set itself",
                      folder.string(), kMaxSearched);
  }
  if (error) throw DataError("{}: cannot search the folder: {}", folder.string(), error.message());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::uint8_t> read_bounded(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (!error && bytes > kMaxFileBytes)
    throw DataError("{}: {} bytes: larger than any file of the set", path.string(), bytes);
  return read_file(path);
}

}  // namespace

Gather::Gather(const CatalogSet& set, fs::path folder, std::set<std::string> missing,
               std::function<void(const std::string&)> progress)
    : set_(set),
      folder_(std::move(folder)),
      missing_(std::move(missing)),
      progress_(std::move(progress)) {}

void Gather::search(const fs::path& source) {
  const std::string name = source.filename().string();
  if (fs::is_directory(source))
    search_folder(source);
  else if (!fs::exists(source))
    throw DataError("{}: not found", source.string());
  else if (ends_with(name, ".deb"))
    search_package(source);
  else if (is_archive_name(name))
    search_archive(source);
  else if (wanted(name))
    take(name, source.string(), read_bounded(source));
  else
    throw DataError("{}: neither a file of {} nor an archive (.tgz, .tar.gz, .tar, .deb) of them",
                    source.string(), set_.name);
}

// Plain files first: what they provide need not be unpacked.
void Gather::search_folder(const fs::path& source) {
  const std::vector<fs::path> files = files_below(source);
  for (const fs::path& path : files)
    if (wanted(path.string())) take(path.string(), path.string(), read_bounded(path));
  for (const fs::path& path : files)
    if (!missing_.empty() && is_archive_name(path.filename().string())) search_archive(path);
}

void Gather::search_archive(const fs::path& source) {
  progress_(fmt::format("unpacking {}", source.filename().string()));
  read_tar(
      source, {}, [&](const std::string& path) { return wanted(path); },
      [&](const std::string& path, std::vector<std::uint8_t> bytes) {
        take(path, source.string() + ":" + path, std::move(bytes));
      });
}

void Gather::search_package(const fs::path& source) {
  progress_(fmt::format("unpacking {}", source.filename().string()));
  const TemporaryFolder unpacked;
  const ChildResult child =
      run_child({"dpkg-deb", "-x", fs::absolute(source).string(), unpacked.path().string()},
                unpacked.path(), kUnpackDeadline_s);
  if (!child.found)
    throw DataError("{}: unpacking it needs dpkg-deb: install the Debian package dpkg",
                    source.string());
  if (child.late || child.exit_code != 0)
    throw DataError("{}: dpkg-deb cannot unpack it: {}", source.string(), child.output);
  const fs::path inside = unpacked.path() / fs::path(set_.debian_folder).relative_path();
  search_folder(fs::is_directory(inside) ? inside : unpacked.path());
}

bool Gather::wanted(const std::string& path) const {
  if (missing_.contains(plain_name(path))) return true;
  if (set_.name != "cifar10" || missing_.empty()) return false;
  return missing_.contains(picture_target(path)) || is_labels(path, "train") ||
         is_labels(path, "test");
}

void Gather::take(const std::string& path, const std::string& from,
                  std::vector<std::uint8_t> bytes) {
  const std::string name = plain_name(path);
  if (!missing_.contains(name)) return take_picture(path, from, std::move(bytes));
  const auto file = std::find_if(set_.files.begin(), set_.files.end(),
                                 [&](const CatalogFile& f) { return f.name == name; });
  if (is_gzip(bytes)) bytes = gunzip(bytes, std::size_t(file->bytes), from);
  put_in_place(*file, bytes, from);
}

void Gather::take_picture(const std::string& path, const std::string& from,
                          std::vector<std::uint8_t> bytes) {
  if (is_labels(path, "train"))
    train_labels_ = parse_cifar_labels(bytes, from);
  else if (is_labels(path, "test"))
    test_labels_ = parse_cifar_labels(bytes, from);
  else
    pictures_[picture_target(path)] = std::move(bytes);
  convert_pictures();
}

// Those pictures whose labels are there: data_batch_3.bin has the third ten thousand.
void Gather::convert_pictures() {
  for (const CatalogFile& file : set_.files) {
    const auto picture = pictures_.find(file.name);
    if (picture == pictures_.end() || !missing_.contains(file.name)) continue;
    const bool test = file.name.starts_with("test");
    const std::vector<std::uint8_t>& labels = test ? test_labels_ : train_labels_;
    const std::size_t number = test ? 0 : std::size_t(file.name[sizeof("data_batch_") - 1] - '1');
    if (labels.empty()) continue;
    if (labels.size() < (number + 1) * kLabelsPerPicture)
      throw DataError("{}: only {} labels for its pictures", file.name, labels.size());
    progress_(fmt::format("converting {}", file.name));
    const auto share = std::span(labels).subspan(number * kLabelsPerPicture, kLabelsPerPicture);
    put_in_place(file, cifar_records(picture->second, share, file.name), "pictures");
    pictures_.erase(picture);
  }
}

void Gather::put_in_place(const CatalogFile& file, const std::vector<std::uint8_t>& bytes,
                          const std::string& from) {
  progress_(fmt::format("verifying {}", file.name));
  const std::string md5 = md5_hex(std::as_bytes(std::span(bytes)));
  if (md5 != file.md5)
    throw DataError(
        "{}: wrong checksum for {}: expected MD5 {} ({} bytes), found {} ({} bytes); nothing was "
        "put in its place",
        from, file.name, file.md5, file.bytes, md5, bytes.size());
  AtomicFile out(folder_ / file.name);
  out.write(std::as_bytes(std::span(bytes)));
  out.commit();
  missing_.erase(file.name);
}

}  // namespace convoy
