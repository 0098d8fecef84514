#include "data/decode.h"

#include <png.h>
#include <turbojpeg.h>

#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/error.h"

namespace convoy {
namespace {

struct CloseJpeg {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using JpegReader = std::unique_ptr<void, CloseJpeg>;

struct JpegHeader {
  int width = 0, height = 0, subsampling = 0, colours = 0;
};

// An image of libpng's simple interface, freed on every way out.
struct PngReader {
  png_image image{};
  PngReader() { image.version = PNG_IMAGE_VERSION; }
  ~PngReader() { png_image_free(&image); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
};

void check_size(std::int64_t width, std::int64_t height, std::string_view name) {
  if (width < 1 || height < 1 || width > kMaxImageSide || height > kMaxImageSide ||
      width * height > kMaxImagePixels)
    throw DataError("{}: {}x{} pixels: expected at most {} a side and {} in all", name, width,
                    height, kMaxImageSide, kMaxImagePixels);
}

JpegHeader read_jpeg_header(void* reader, std::span<const std::uint8_t> bytes,
                            std::string_view name) {
  JpegHeader header;
  if (tjDecompressHeader3(reader, bytes.data(), bytes.size(), &header.width, &header.height,
                          &header.subsampling, &header.colours) != 0 &&
      tjGetErrorCode(reader) == TJERR_FATAL)
    throw DataError("{}: broken JPEG header: {}", name, tjGetErrorStr2(reader));
  check_size(header.width, header.height, name);
  return header;
}

void begin_png(PngReader& reader, std::span<const std::uint8_t> bytes, std::string_view name) {
  if (!png_image_begin_read_from_memory(&reader.image, bytes.data(), bytes.size()))
    throw DataError("{}: broken PNG header: {}", name, reader.image.message);
  check_size(reader.image.width, reader.image.height, name);
}

// The smallest of the library's sizes (1, 1/2, 1/4, 1/8) that is still enough.
ImageSize jpeg_decode_size(const JpegHeader& header, ImageSize enough) {
  ImageSize best{header.width, header.height};
  if (enough.width < 1 || enough.height < 1) return best;
  for (int divisor : {2, 4, 8}) {
    const tjscalingfactor factor{1, divisor};
    const ImageSize size{TJSCALED(header.width, factor), TJSCALED(header.height, factor)};
    if (size.width >= enough.width && size.height >= enough.height) best = size;
  }
  return best;
}

// Adobe stores CMYK inverted (255: no ink), so a colour is ink left over times black left over.
void cmyk_to_rgb(std::span<const std::uint8_t> cmyk, std::span<std::uint8_t> rgb) {
  for (std::size_t i = 0; i < cmyk.size() / 4; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      rgb[3 * i + c] = std::uint8_t((int(cmyk[4 * i + c]) * cmyk[4 * i + 3] + 127) / 255);
}

Image decode_jpeg(std::span<const std::uint8_t> bytes, std::string_view name, ImageSize enough) {
  const JpegReader reader(tjInitDecompress());
  CHECK(reader != nullptr, "libjpeg-turbo cannot start");
  const JpegHeader header = read_jpeg_header(reader.get(), bytes, name);
  const bool grey = header.colours == TJCS_GRAY;
  const bool cmyk = header.colours == TJCS_CMYK || header.colours == TJCS_YCCK;
  const ImageSize size = jpeg_decode_size(header, enough);
  Image image{size.width, size.height, grey ? 1 : 3, {}};
  const std::size_t count = std::size_t(size.width) * std::size_t(size.height);
  image.pixels.resize(count * std::size_t(image.channels));
  std::vector<std::uint8_t> inks(cmyk ? count * 4 : 0);
  const int status =
      tjDecompress2(reader.get(), bytes.data(), bytes.size(),
                    cmyk ? inks.data() : image.pixels.data(), size.width, 0, size.height,
                    cmyk   ? TJPF_CMYK
                    : grey ? TJPF_GRAY
                           : TJPF_RGB,
                    0);
  // Stray bytes between markers leave a good picture; any other complaint means that some of it is
  // lost.
  const std::string problem = status == 0 ? "" : tjGetErrorStr2(reader.get());
  if (status != 0 && (tjGetErrorCode(reader.get()) == TJERR_FATAL ||
                      problem.find("extraneous bytes") == std::string::npos))
    throw DataError("{}: broken JPEG: {}", name, problem);
  if (cmyk) cmyk_to_rgb(inks, image.pixels);
  return image;
}

Image decode_png(std::span<const std::uint8_t> bytes, std::string_view name) {
  PngReader reader;
  begin_png(reader, bytes, name);
  const bool grey = (reader.image.format & PNG_FORMAT_FLAG_COLOR) == 0;
  reader.image.format = grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  reader.image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  Image image{int(reader.image.width), int(reader.image.height), grey ? 1 : 3, {}};
  image.pixels.resize(PNG_IMAGE_SIZE(reader.image));
  const png_color white{255, 255, 255};
  if (!png_image_finish_read(&reader.image, &white, image.pixels.data(), 0, nullptr))
    throw DataError("{}: broken PNG: {}", name, reader.image.message);
  return image;
}

}  // namespace

ImageKind image_kind(std::span<const std::uint8_t> bytes) {
  constexpr std::uint8_t kPng[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff)
    return ImageKind::jpeg;
  if (bytes.size() >= 8 && std::memcmp(bytes.data(), kPng, 8) == 0) return ImageKind::png;
  return ImageKind::foreign;
}

ImageSize read_image_size(std::span<const std::uint8_t> bytes, std::string_view name) {
  switch (image_kind(bytes)) {
    case ImageKind::jpeg: {
      const JpegReader reader(tjInitDecompress());
      CHECK(reader != nullptr, "libjpeg-turbo cannot start");
      const JpegHeader header = read_jpeg_header(reader.get(), bytes, name);
      return {header.width, header.height};
    }
    case ImageKind::png: {
      PngReader reader;
      begin_png(reader, bytes, name);
      return {int(reader.image.width), int(reader.image.height)};
    }
    case ImageKind::foreign:
      break;
  }
  throw DataError("{}: neither a JPEG nor a PNG file", name);
}

Image decode_image(std::span<const std::uint8_t> bytes, std::string_view name, ImageSize enough) {
  switch (image_kind(bytes)) {
    case ImageKind::jpeg:
      return decode_jpeg(bytes, name, enough);
    case ImageKind::png:
      return decode_png(bytes, name);
    case ImageKind::foreign:
      break;
  }
  throw DataError("{}: neither a JPEG nor a PNG file", name);
}

}  // namespace convoy
