#include "data/image_folder.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "data/decode.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeaderBytes = 64 << 10;  // holds the header of nearly every file
constexpr std::size_t kTailBytes = 4096;        // the end marker, and what cameras append after it
constexpr std::uintmax_t kMaxFileBytes = 256 << 20;

bool has_image_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = char(std::tolower(static_cast<unsigned char>(c)));
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

// Entries of a folder by name, so that every machine sees one order.
std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  if (error) throw DataError("{}: cannot list the folder: {}", folder.string(), error.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Part of a file, shorter where the file ends.
std::vector<std::uint8_t> read_part(const fs::path& path, std::uintmax_t offset,
                                    std::size_t count) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw DataError("{}: cannot open: {}", path.string(), std::strerror(errno));
  std::vector<std::uint8_t> bytes(count);
  const ssize_t got = ::pread(fd, bytes.data(), count, off_t(offset));
  const int error = errno;
  ::close(fd);
  if (got < 0) throw DataError("{}: cannot read: {}", path.string(), std::strerror(error));
  bytes.resize(std::size_t(got));
  return bytes;
}

// Cheap: the header must be sound, and the end must be there.
void check_ends(const fs::path& path, std::uintmax_t file_bytes) {
  const std::vector<std::uint8_t> head = read_part(path, 0, kHeaderBytes);
  try {
    read_image_size(head, path.string());
  } catch (const DataError&) {
    // Large metadata can push the size beyond the first part.
    if (file_bytes <= head.size() || image_kind(head) == ImageKind::foreign) throw;
    read_image_size(read_file(path), path.string());
  }
  const std::uintmax_t offset = file_bytes > kTailBytes ? file_bytes - kTailBytes : 0;
  const std::vector<std::uint8_t> tail = read_part(path, offset, kTailBytes);
  const std::vector<std::uint8_t> mark = image_kind(head) == ImageKind::jpeg
                                             ? std::vector<std::uint8_t>{0xff, 0xd9}
                                             : std::vector<std::uint8_t>{'I', 'E', 'N', 'D'};
  if (std::search(tail.begin(), tail.end(), mark.begin(), mark.end()) == tail.end())
    throw DataError("{}: cut off: no end mark in its last {} bytes", path.string(), tail.size());
}

struct Candidate {
  fs::path path;
  std::uintmax_t bytes = 0;
};

// An image file by its looks, or DataError.
Candidate look_at(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) throw DataError("{}: not a file", path.string());
  if (!has_image_extension(path))
    throw DataError("{}: not an image file (.jpg, .jpeg or .png)", path.string());
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error) throw DataError("{}: {}", path.string(), error.message());
  if (bytes > kMaxFileBytes)
    throw DataError("{}: {} bytes: larger than any image", path.string(), bytes);
  return {path, bytes};
}

}  // namespace

struct ImageFolder::State {
  Shape shape;
  std::vector<std::string> class_names;
  std::vector<std::vector<fs::path>> files;  // per class
  struct Sample {
    std::uint32_t label, place;  // files[label][place]
  };
  std::vector<Sample> samples;
  std::size_t skipped = 0;

  mutable std::mutex mutex;           // guards what follows
  mutable std::set<fs::path> broken;  // found when they were read

  template <typename Check>
  bool usable(Check check) {
    try {
      check();
      return true;
    } catch (const DataError& error) {
      spdlog::warn("{}; skipped", error.what());
      ++skipped;
      return false;
    }
  }

  std::vector<std::vector<Candidate>> find_candidates(const fs::path& folder);
  void keep_usable(const fs::path& folder, std::vector<std::vector<Candidate>> candidates,
                   std::uintmax_t decode_at_open_bytes);
  void take_turns();
  bool try_read(const fs::path& path, std::span<std::uint8_t> image) const;
};

std::vector<std::vector<Candidate>> ImageFolder::State::find_candidates(const fs::path& folder) {
  std::vector<fs::path> class_folders;
  for (const fs::path& entry : sorted_entries(folder))
    if (fs::is_directory(entry)) class_folders.push_back(entry);
  if (class_folders.empty())
    throw DataError("{}: no class folders; expected {}/CLASS/*.jpg", folder.string(),
                    folder.string());
  if (class_names.empty())
    for (const fs::path& path : class_folders) class_names.push_back(path.filename().string());
  std::vector<std::vector<Candidate>> candidates(class_names.size());
  for (const fs::path& path : class_folders) {
    const auto at = std::find(class_names.begin(), class_names.end(), path.filename().string());
    if (at == class_names.end())
      throw DataError("{}: class {} has no folder among the training images", path.string(),
                      path.filename().string());
    std::vector<Candidate>& found = candidates[std::size_t(at - class_names.begin())];
    for (const fs::path& entry : sorted_entries(path))
      usable([&] { found.push_back(look_at(entry)); });
    if (found.empty())
      throw DataError(
          "{}: class folder with no images (.jpg, .jpeg or .png); add some or remove it",
          path.string());
  }
  return candidates;
}

void ImageFolder::State::keep_usable(const fs::path& folder,
                                     std::vector<std::vector<Candidate>> candidates,
                                     std::uintmax_t decode_at_open_bytes) {
  std::uintmax_t total = 0;
  for (const auto& of_class : candidates)
    for (const Candidate& candidate : of_class) total += candidate.bytes;
  const bool decode_all = total <= decode_at_open_bytes;
  files.resize(class_names.size());
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    for (const Candidate& candidate : candidates[c])
      if (usable([&] {
            if (decode_all)
              decode_image(read_file(candidate.path), candidate.path.string());
            else
              check_ends(candidate.path, candidate.bytes);
          }))
        files[c].push_back(candidate.path);
    if (files[c].empty() && !candidates[c].empty())
      throw DataError("{}: class folder with no usable image: all {} are broken",
                      (folder / class_names[c]).string(), candidates[c].size());
  }
}

// The first of every class, then the second of every class that has one, and so on.
void ImageFolder::State::take_turns() {
  std::size_t longest = 0;
  for (const auto& of_class : files) longest = std::max(longest, of_class.size());
  for (std::size_t place = 0; place < longest; ++place)
    for (std::size_t c = 0; c < files.size(); ++c)
      if (place < files[c].size()) samples.push_back({std::uint32_t(c), std::uint32_t(place)});
}

bool ImageFolder::State::try_read(const fs::path& path, std::span<std::uint8_t> image) const {
  try {
    const std::vector<std::uint8_t> bytes = read_file(path);
    const ImageSize size = read_image_size(bytes, path.string());
    fit_image(decode_image(bytes, path.string(), covering_size(size, shape)), shape, image);
    return true;
  } catch (const DataError& error) {
    std::lock_guard lock(mutex);
    if (broken.insert(path).second)
      spdlog::warn("{}; the next image of its class stands in for it", error.what());
    return false;
  }
}

ImageFolder::ImageFolder(const fs::path& folder, const ImageFolderOptions& options,
                         std::vector<std::string> class_names)
    : state_(std::make_unique<State>()) {
  if (options.shape.channels != 1 && options.shape.channels != 3)
    throw ConfigError("{}: images have 1 (grey) or 3 (RGB) channels, not {}", folder.string(),
                      options.shape.channels);
  state_->shape = options.shape;
  state_->class_names = std::move(class_names);
  state_->keep_usable(folder, state_->find_candidates(folder), options.decode_at_open_bytes);
  state_->take_turns();
  if (state_->skipped > 0)
    spdlog::warn("{}: {} images in {} classes; {} files skipped", folder.string(), size(),
                 classes(), state_->skipped);
}

ImageFolder::~ImageFolder() = default;

std::size_t ImageFolder::size() const { return state_->samples.size(); }
Shape ImageFolder::shape() const { return state_->shape; }
int ImageFolder::classes() const { return int(state_->class_names.size()); }
int ImageFolder::label(std::size_t index) const { return int(state_->samples[index].label); }
const std::vector<std::string>& ImageFolder::class_names() const { return state_->class_names; }
std::size_t ImageFolder::skipped() const { return state_->skipped; }

std::size_t ImageFolder::replaced() const {
  std::lock_guard lock(state_->mutex);
  return state_->broken.size();
}

void ImageFolder::read(std::size_t index, std::span<std::uint8_t> image) const {
  CHECK(index < size(), "image {} of {}", index, size());
  const State::Sample sample = state_->samples[index];
  const std::vector<fs::path>& of_class = state_->files[sample.label];
  for (std::size_t i = 0; i < of_class.size(); ++i)
    if (state_->try_read(of_class[(sample.place + i) % of_class.size()], image)) return;
  throw DataError("{}: no image of the class can be read any more",
                  of_class[sample.place].parent_path().string());
}

// Of ImageNet's training images; a grey image gets their average.
std::vector<float> ImageFolder::mean() const {
  if (state_->shape.channels == 1) return {0.449f};
  return {0.485f, 0.456f, 0.406f};
}

std::vector<float> ImageFolder::deviation() const {
  if (state_->shape.channels == 1) return {0.226f};
  return {0.229f, 0.224f, 0.225f};
}

ImageFolderSplit open_image_folder(const fs::path& folder, const Shape& shape) {
  if (!fs::is_directory(folder / "train"))
    throw DataError("{}: no train folder; expected {}/train/CLASS/*.jpg and {}/val/CLASS/*.jpg",
                    folder.string(), folder.string(), folder.string());
  const fs::path test = fs::is_directory(folder / "val") ? folder / "val" : folder / "test";
  if (!fs::is_directory(test))
    throw DataError("{}: no val or test folder; expected {}/val/CLASS/*.jpg", folder.string(),
                    folder.string());
  ImageFolderSplit split;
  split.train = std::make_unique<ImageFolder>(folder / "train", ImageFolderOptions{.shape = shape});
  split.test = std::make_unique<ImageFolder>(test, ImageFolderOptions{.shape = shape},
                                             split.train->class_names());
  return split;
}

}  // namespace convoy
