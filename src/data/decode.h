// JPEG and PNG files to pixels of a wanted shape.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.h"

namespace convoy {

// Larger images are refused: they would take more memory than a photograph ever does.
constexpr int kMaxImageSide = 32768;
constexpr std::int64_t kMaxImagePixels = 100'000'000;

// Pixels row by row, the channels of a pixel side by side (1: grey, 3: RGB).
struct Image {
  int width = 0;
  int height = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels;
};

enum class ImageKind { foreign, jpeg, png };

// By the first bytes, whatever the file is called.
ImageKind image_kind(std::span<const std::uint8_t> bytes);

struct ImageSize {
  int width = 0;
  int height = 0;
};

// Reads the header only; the rest of the file may be absent. Throws DataError that names `name`
// where the bytes are no JPEG or PNG, or too large.
ImageSize read_image_size(std::span<const std::uint8_t> bytes, std::string_view name);

// Decodes to grey or RGB, whichever the file holds: palettes are looked up, 16 bits become 8, alpha
// is laid over white, CMYK is read as Adobe writes it (inverted). A JPEG may be decoded at a half,
// a quarter or an eighth of its size as long as both sides stay at least `enough`; {} asks for the
// full size. Throws DataError, which names `name`, on a damaged or cut file.
Image decode_image(std::span<const std::uint8_t> bytes, std::string_view name,
                   ImageSize enough = {});

// Bilinear, with a wider triangle where it shrinks, so that no detail turns into false patterns.
Image resize(const Image& image, ImageSize size);

// Scales the image so that it covers the shape (by 256/224 more where the shape's shorter side is
// above 64), takes the centre, converts grey <-> RGB and writes channel planes.
void fit_image(const Image& image, const Shape& shape, std::span<std::uint8_t> out);

// The size that an image of `size` has after fit_image()'s scaling, before its crop.
ImageSize covering_size(ImageSize size, const Shape& shape);

}  // namespace convoy
