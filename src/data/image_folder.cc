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
std::vector<fs::directory_entry> sorted_entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(*it);
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

// By its looks alone, or DataError.
void check_looks(const fs::directory_entry& entry) {
  std::error_code error;
  if (!entry.is_regular_file(error)) throw DataError("{}: not a file", entry.path().string());
  if (!has_image_extension(entry.path()))
    throw DataError("{}: not an image file (.jpg, .jpeg or .png)", entry.path().string());
}

enum class Check { ends, whole };

void check_content(const fs::path& path, Check check) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error) throw DataError("{}: {}", path.string(), error.message());
  if (bytes > kMaxFileBytes)
    throw DataError("{}: {} bytes: larger than any image", path.string(), bytes);
  if (check == Check::whole)
    decode_image(read_file(path), path.string());
  else
    check_ends(path, bytes);
}

// Whether these files have no more bytes than that together.
bool fits(const std::vector<fs::path>& files, std::uintmax_t most_bytes) {
  std::uintmax_t total = 0;
  std::error_code error;
  for (const fs::path& path : files) {
    const std::uintmax_t bytes = fs::file_size(path, error);
    if (!error) total += bytes;
    if (total > most_bytes) return false;
  }
  return true;
}

// What can stand in for an image: the others of its folder, from the next one on.
std::vector<fs::path> stand_ins(const fs::path& image) {
  std::vector<fs::path> after, before;
  std::error_code error;
  for (const fs::directory_entry& entry : sorted_entries(image.parent_path())) {
    if (!entry.is_regular_file(error) || !has_image_extension(entry.path())) continue;
    if (entry.path() != image) (entry.path() > image ? after : before).push_back(entry.path());
  }
  after.insert(after.end(), before.begin(), before.end());
  return after;
}

}  // namespace

struct ImageFolder::State {
  fs::path folder;
  Shape shape;
  std::vector<std::string> class_names;
  struct Sample {
    std::uint32_t label;
    std::string name;  // of a file in the folder of its class
  };
  std::vector<Sample> samples;  // of the part
  std::size_t first = 0, whole_size = 0;
  std::size_t skipped = 0;
  std::size_t broken_at_open = 0;  // and skipped

  mutable std::mutex mutex;           // guards what follows
  mutable std::set<fs::path> broken;  // found when they were read

  fs::path path_of(const Sample& sample) const {
    return folder / class_names[sample.label] / sample.name;
  }

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

  using Names = std::vector<std::vector<std::string>>;  // of files, per class
  Names find_candidates();
  void keep_usable(Names& names, std::uintmax_t decode_at_open_bytes);
  void take_turns(const Names& names);
  void keep_part(const Cut& cut);
  void check_part(std::uintmax_t decode_at_open_bytes);
  void replace(const fs::path& path, const DataError& error) const;
  bool try_read(const fs::path& path, std::span<std::uint8_t> image) const;
};

ImageFolder::State::Names ImageFolder::State::find_candidates() {
  std::vector<fs::path> class_folders;
  for (const fs::directory_entry& entry : sorted_entries(folder))
    if (entry.is_directory()) class_folders.push_back(entry.path());
  if (class_folders.empty())
    throw DataError("{}: no class folders; expected {}/CLASS/*.jpg", folder.string(),
                    folder.string());
  if (class_names.empty())
    for (const fs::path& path : class_folders) class_names.push_back(path.filename().string());
  Names names(class_names.size());
  for (const fs::path& path : class_folders) {
    const auto at = std::find(class_names.begin(), class_names.end(), path.filename().string());
    if (at == class_names.end())
      throw DataError("{}: class {} has no folder among the training images", path.string(),
                      path.filename().string());
    std::vector<std::string>& found = names[std::size_t(at - class_names.begin())];
    for (const fs::directory_entry& entry : sorted_entries(path))
      if (usable([&] { check_looks(entry); })) found.push_back(entry.path().filename().string());
    if (found.empty())
      throw DataError(
          "{}: class folder with no images (.jpg, .jpeg or .png); add some or remove it",
          path.string());
  }
  return names;
}

// Of the whole set: what cannot be used is left out.
void ImageFolder::State::keep_usable(Names& names, std::uintmax_t decode_at_open_bytes) {
  std::vector<fs::path> all;
  for (std::size_t c = 0; c < names.size(); ++c)
    for (const std::string& name : names[c]) all.push_back(folder / class_names[c] / name);
  const Check check = fits(all, decode_at_open_bytes) ? Check::whole : Check::ends;
  for (std::size_t c = 0; c < names.size(); ++c) {
    const std::size_t candidates = names[c].size();
    const auto is_broken = [&](const std::string& name) {
      const fs::path path = folder / class_names[c] / name;
      if (usable([&] { check_content(path, check); })) return false;
      broken.insert(path);
      return true;
    };
    std::erase_if(names[c], is_broken);
    if (names[c].empty() && candidates > 0)
      throw DataError("{}: class folder with no usable image: all {} are broken",
                      (folder / class_names[c]).string(), candidates);
  }
  broken_at_open = broken.size();
}

// The first of every class, then the second of every class that has one, and so on.
void ImageFolder::State::take_turns(const Names& names) {
  std::size_t longest = 0;
  for (const auto& of_class : names) longest = std::max(longest, of_class.size());
  for (std::size_t place = 0; place < longest; ++place)
    for (std::size_t c = 0; c < names.size(); ++c)
      if (place < names[c].size()) samples.push_back({std::uint32_t(c), names[c][place]});
}

void ImageFolder::State::keep_part(const Cut& cut) {
  const Range range = cut.of(samples.size());
  first = range.begin;
  whole_size = cut.whole(samples.size());
  const auto begin = std::make_move_iterator(samples.begin() + std::ptrdiff_t(range.begin));
  samples = std::vector<Sample>(begin, begin + std::ptrdiff_t(range.count));
}

// Of a part: only its own files are looked into, and others stand in for those that are broken.
void ImageFolder::State::check_part(std::uintmax_t decode_at_open_bytes) {
  std::vector<fs::path> own;
  for (const Sample& sample : samples) own.push_back(path_of(sample));
  const Check check = fits(own, decode_at_open_bytes) ? Check::whole : Check::ends;
  for (const fs::path& path : own) try {
      check_content(path, check);
    } catch (const DataError& error) {
      replace(path, error);
    }
}

void ImageFolder::State::replace(const fs::path& path, const DataError& error) const {
  std::lock_guard lock(mutex);
  if (broken.insert(path).second)
    spdlog::warn("{}; the next image of its class stands in for it", error.what());
}

bool ImageFolder::State::try_read(const fs::path& path, std::span<std::uint8_t> image) const {
  {
    std::lock_guard lock(mutex);
    if (broken.contains(path)) return false;
  }
  try {
    const std::vector<std::uint8_t> bytes = read_file(path);
    const ImageSize size = read_image_size(bytes, path.string());
    fit_image(decode_image(bytes, path.string(), covering_size(size, shape)), shape, image);
    return true;
  } catch (const DataError& error) {
    replace(path, error);
    return false;
  }
}

ImageFolder::ImageFolder(const fs::path& folder, const ImageFolderOptions& options,
                         std::vector<std::string> class_names)
    : state_(std::make_unique<State>()) {
  if (options.shape.channels != 1 && options.shape.channels != 3)
    throw ConfigError("{}: images have 1 (grey) or 3 (RGB) channels, not {}", folder.string(),
                      options.shape.channels);
  state_->folder = folder;
  state_->shape = options.shape;
  state_->class_names = std::move(class_names);
  State::Names names = state_->find_candidates();
  const bool whole = options.cut.parts == 1;
  if (whole) state_->keep_usable(names, options.decode_at_open_bytes);
  state_->take_turns(names);
  state_->keep_part(options.cut);
  if (!whole) state_->check_part(options.decode_at_open_bytes);
  if (state_->skipped > 0)
    spdlog::warn("{}: {} images in {} classes; {} files skipped", folder.string(), whole_size(),
                 classes(), state_->skipped);
}

ImageFolder::~ImageFolder() = default;

std::size_t ImageFolder::size() const { return state_->samples.size(); }
std::size_t ImageFolder::first() const { return state_->first; }
std::size_t ImageFolder::whole_size() const { return state_->whole_size; }
Shape ImageFolder::shape() const { return state_->shape; }
int ImageFolder::classes() const { return int(state_->class_names.size()); }
int ImageFolder::label(std::size_t index) const { return int(state_->samples[index].label); }
const std::vector<std::string>& ImageFolder::class_names() const { return state_->class_names; }
std::size_t ImageFolder::skipped() const { return state_->skipped; }

std::size_t ImageFolder::replaced() const {
  std::lock_guard lock(state_->mutex);
  return state_->broken.size() - state_->broken_at_open;
}

void ImageFolder::read(std::size_t index, std::span<std::uint8_t> image) const {
  CHECK(index < size(), "image {} of {}", index, size());
  const fs::path path = state_->path_of(state_->samples[index]);
  if (state_->try_read(path, image)) return;
  for (const fs::path& other : stand_ins(path))
    if (state_->try_read(other, image)) return;
  throw DataError("{}: no image of the class can be read any more", path.parent_path().string());
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

ImageFolderSplit open_image_folder(const fs::path& folder, const Shape& shape, const Cut& train_cut,
                                   const Cut& test_cut) {
  if (!fs::is_directory(folder / "train"))
    throw DataError("{}: no train folder; expected {}/train/CLASS/*.jpg and {}/val/CLASS/*.jpg",
                    folder.string(), folder.string(), folder.string());
  const fs::path test = fs::is_directory(folder / "val") ? folder / "val" : folder / "test";
  if (!fs::is_directory(test))
    throw DataError("{}: no val or test folder; expected {}/val/CLASS/*.jpg", folder.string(),
                    folder.string());
  ImageFolderSplit split;
  split.train = std::make_unique<ImageFolder>(folder / "train",
                                              ImageFolderOptions{.shape = shape, .cut = train_cut});
  split.test = std::make_unique<ImageFolder>(
      test, ImageFolderOptions{.shape = shape, .cut = test_cut}, split.train->class_names());
  return split;
}

}  // namespace convoy
