// From bytes to what a network reads: normalised f32 planes, with the random changes of training.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "data/loader.h"

namespace convoy {

// Normalises (x / 255 - mean) / deviation per channel; then a random crop of the image padded with
// black (byte 0) or with its own mirror image, and a random mirror image, both keyed by (seed,
// epoch, sample). Alternating mirror images (Jordan 2024) show every image both ways in any two
// epochs that follow each other. Const calls may run on several threads at once.
class Augment {
 public:
  Augment(const Dataset& dataset, const AugmentOptions& options, std::uint64_t seed);

  // `image` is CHW bytes, `out` as many floats; they do not overlap.
  void apply(std::span<const std::uint8_t> image, std::uint32_t epoch, std::uint64_t sample,
             std::span<float> out) const;

 private:
  struct Channel {
    float scale, shift;  // out = byte * scale + shift
  };
  struct Change {
    int down = 0, right = 0;  // pixel (y, x) of the crop is the image's (y + down, x + right)
    bool mirrored = false;    // after the crop
  };

  Change choose(std::uint32_t epoch, std::uint64_t sample) const;
  // `from` is the row of the image that the crop's row shows.
  void write_row(const std::uint8_t* from, const Change& change, const Channel& channel,
                 float* row) const;

  Shape shape_;
  AugmentOptions options_;
  std::uint64_t seed_;
  std::vector<Channel> channels_;
};

}  // namespace convoy
