// What training data looks like: labelled images of one shape, as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/shape.h"

namespace convoy {

// A set of labelled images, or the part of one that a worker reads: indices begin at 0 in the part.
// Reading is const and may happen on several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::size_t size() const = 0;
  // Of a part: the place of its first sample in the whole set, and how many that has.
  virtual std::size_t first() const { return 0; }
  virtual std::size_t whole_size() const { return size(); }
  virtual Shape shape() const = 0;  // of every image
  virtual int classes() const = 0;
  virtual int label(std::size_t index) const = 0;
  // Writes the image as channel planes (CHW), shape().count() bytes.
  virtual void read(std::size_t index, std::span<std::uint8_t> image) const = 0;
  // Whether reading is no more than copying, and cannot fail.
  virtual bool in_memory() const { return false; }
  // Per channel, of pixels scaled to [0, 1]: what normalisation subtracts and divides by; of the
  // whole set, whatever part this is.
  virtual std::vector<float> mean() const = 0;
  virtual std::vector<float> deviation() const = 0;
};

}  // namespace convoy
