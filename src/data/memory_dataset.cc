#include "data/memory_dataset.h"

#include <cstring>

#include "base/check.h"

namespace convoy {

MemoryDataset::MemoryDataset(MemoryImages images) : images_(std::move(images)) {
  CHECK(images_.bytes.size() >= images_.labels.size() * images_.shape.count(),
        "{} bytes are too few for {} images of {}", images_.bytes.size(), images_.labels.size(),
        images_.shape.to_string());
}

void MemoryDataset::read(std::size_t index, std::span<std::uint8_t> image) const {
  const std::size_t count = images_.shape.count();
  CHECK(index < size() && image.size() == count, "image {} of {} into {} bytes", index, size(),
        image.size());
  std::memcpy(image.data(), images_.bytes.data() + index * count, count);
}

}  // namespace convoy
