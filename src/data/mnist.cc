#include "data/mnist.h"

#include "base/error.h"
#include "base/file.h"
#include "data/idx.h"
#include "data/memory_dataset.h"

namespace convoy {
namespace {

constexpr std::size_t kMaxBytes = std::size_t(1)
                                  << 30;  // decompressed; MNIST's largest file has 47 MB
constexpr int kClasses = 10;
constexpr std::uint32_t kMaxSide = 4096;

struct IdxFile {
  std::filesystem::path path;
  std::vector<std::uint8_t> bytes;  // not compressed
};

IdxFile read_idx_file(const MnistFiles& files, const std::string& file_name) {
  const std::filesystem::path plain = files.folder / file_name;
  for (const std::filesystem::path& path : {plain, std::filesystem::path(plain.string() + ".gz")}) {
    if (!std::filesystem::exists(path)) continue;
    return {path, plain_idx_bytes(read_file(path), kMaxBytes, path.string())};
  }
  throw DataError("{}: not found; run: convoy data get {}", plain.string(), files.name);
}

}  // namespace

std::unique_ptr<Dataset> open_mnist(const MnistFiles& files, MnistPart part) {
  const std::string prefix = part == MnistPart::train ? "train" : "t10k";
  IdxFile images_file = read_idx_file(files, prefix + "-images-idx3-ubyte");
  const IdxFile labels_file = read_idx_file(files, prefix + "-labels-idx1-ubyte");
  const IdxView images = parse_idx(images_file.bytes, 3, images_file.path.string());
  const IdxView labels = parse_idx(labels_file.bytes, 1, labels_file.path.string());
  const std::uint32_t count = images.dimensions[0];
  const std::uint32_t height = images.dimensions[1], width = images.dimensions[2];
  if (count == 0 || height == 0 || width == 0 || height > kMaxSide || width > kMaxSide)
    throw DataError("{}: {} images of {}x{} pixels: not a usable set; run: convoy data get {}",
                    images_file.path.string(), count, height, width, files.name);
  if (labels.dimensions[0] != count)
    throw DataError("{}: {} labels for the {} images of {}; run: convoy data get {}",
                    labels_file.path.string(), labels.dimensions[0], count,
                    images_file.path.string(), files.name);
  for (std::size_t i = 0; i < labels.values.size(); ++i)
    if (labels.values[i] >= kClasses)
      throw DataError("{}: label {} is {}: expected 0 to {}", labels_file.path.string(), i,
                      labels.values[i], kClasses - 1);
  MemoryImages memory{.shape = {1, int(height), int(width)},
                      .classes = kClasses,
                      .bytes = {},
                      .offset = std::size_t(images.values.data() - images_file.bytes.data()),
                      .labels = {labels.values.begin(), labels.values.end()},
                      .mean = {files.mean},
                      .deviation = {files.deviation}};
  memory.bytes = std::move(images_file.bytes);
  return std::make_unique<MemoryDataset>(std::move(memory));
}

}  // namespace convoy
