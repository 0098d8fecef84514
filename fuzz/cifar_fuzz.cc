// Any bytes as a CIFAR-10 file: all of its records or an error that leaves nothing behind.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "data/cifar10.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The size that fits, and its neighbours.
  const std::size_t fitting = size / convoy::kCifarRecordBytes;
  for (std::size_t records = fitting > 0 ? fitting - 1 : 0; records <= fitting + 1; ++records) {
    convoy::CifarImages images;
    try {
      convoy::parse_cifar10({data, size}, records, "fuzz", images);
      if (images.labels.size() != records || images.pixels.size() != records * convoy::kCifarPixels)
        std::abort();
      for (const std::uint8_t label : images.labels)
        if (label > 9) std::abort();
    } catch (const convoy::DataError&) {
      if (!images.labels.empty() || !images.pixels.empty()) std::abort();
    }
  }
  return 0;
}
