#include "data/mnist.h"

#include "base/error.h"
#include "data/idx_rows.h"
#include "data/memory_dataset.h"

namespace convoy {
namespace {

constexpr int kClasses = 10;
constexpr std::uint32_t kMaxSide = 4096;

IdxRows read_rows(const MnistFiles& files, const std::string& file_name, int dimensions,
                  const Cut& cut) {
  IdxRows rows;
  const std::filesystem::path plain = files.folder / file_name;
  if (!read_idx_rows(plain, dimensions, cut, files.open, rows))
    throw DataError("{}: not found; run: convoy data get {}", plain.string(), files.name);
  return rows;
}

}  // namespace

std::unique_ptr<Dataset> open_mnist(const MnistFiles& files, MnistPart part, const Cut& cut) {
  const std::string prefix = part == MnistPart::train ? "train" : "t10k";
  IdxRows images = read_rows(files, prefix + "-images-idx3-ubyte", 3, cut);
  IdxRows labels = read_rows(files, prefix + "-labels-idx1-ubyte", 1, cut);
  const std::uint32_t count = images.dimensions[0];
  const std::uint32_t height = images.dimensions[1], width = images.dimensions[2];
  if (count == 0 || height == 0 || width == 0 || height > kMaxSide || width > kMaxSide)
    throw DataError("{}: {} images of {}x{} pixels: not a usable set; run: convoy data get {}",
                    images.path.string(), count, height, width, files.name);
  if (labels.dimensions[0] != count)
    throw DataError("{}: {} labels for the {} images of {}; run: convoy data get {}",
                    labels.path.string(), labels.dimensions[0], count, images.path.string(),
                    files.name);
  const std::size_t first = cut.of(count).begin;
  for (std::size_t i = 0; i < labels.values.size(); ++i)
    if (labels.values[i] >= kClasses)
      throw DataError("{}: label {} is {}: expected 0 to {}", labels.path.string(), first + i,
                      labels.values[i], kClasses - 1);
  return std::make_unique<MemoryDataset>(MemoryImages{.shape = {1, int(height), int(width)},
                                                      .classes = kClasses,
                                                      .bytes = std::move(images.values),
                                                      .labels = std::move(labels.values),
                                                      .mean = {files.mean},
                                                      .deviation = {files.deviation},
                                                      .first = first,
                                                      .whole_size = cut.whole(count)});
}

}  // namespace convoy
