// Small files that the tests of this folder make for themselves.
#pragma once

#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace convoy::test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes to_bytes(const std::string& text) { return {text.begin(), text.end()}; }

inline void write_bytes(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  ASSERT_TRUE(file.good()) << path;
}

// What the call says when it throws an Error; empty where it does not throw.
template <typename Error>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline Bytes gzip(const Bytes& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes result(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = uInt(bytes.size());
  stream.next_out = result.data();
  stream.avail_out = uInt(result.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

inline Bytes idx(const std::vector<std::uint32_t>& dimensions, const Bytes& values) {
  Bytes bytes = {0, 0, 8, std::uint8_t(dimensions.size())};
  for (std::uint32_t d : dimensions)
    for (int shift : {24, 16, 8, 0}) bytes.push_back(std::uint8_t(d >> shift));
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

// Pixels interleaved; `format` is one of turbojpeg's (TJPF_RGB, TJPF_GRAY, TJPF_CMYK).
inline Bytes jpeg(int width, int height, const Bytes& pixels, int format, int flags = 0) {
  tjhandle handle = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;
  const int sampling = format == TJPF_GRAY ? TJSAMP_GRAY : TJSAMP_444;
  EXPECT_EQ(tjCompress2(handle, pixels.data(), width, 0, height, format, &out, &size, sampling, 95,
                        flags),
            0)
      << tjGetErrorStr2(handle);
  Bytes bytes(out, out + size);
  tjFree(out);
  tjDestroy(handle);
  return bytes;
}

// `format` is one of libpng's (PNG_FORMAT_RGB, ...); 16-bit pixels are given as bytes of the
// machine's order.
inline Bytes png(int width, int height, const Bytes& pixels, std::uint32_t format,
                 const Bytes& palette = {}) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = png_uint_32(width);
  image.height = png_uint_32(height);
  image.format = format;
  image.colormap_entries = png_uint_32(palette.size() / 3);
  const void* colours = palette.empty() ? nullptr : palette.data();
  png_alloc_size_t size = 0;
  EXPECT_TRUE(png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, colours))
      << image.message;
  Bytes bytes(size);
  EXPECT_TRUE(png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, colours))
      << image.message;
  bytes.resize(size);
  return bytes;
}

inline Bytes solid(int width, int height, const Bytes& pixel) {
  Bytes pixels;
  for (int i = 0; i < width * height; ++i) pixels.insert(pixels.end(), pixel.begin(), pixel.end());
  return pixels;
}

// A ustar archive with these regular files.
inline Bytes tar(const std::vector<std::pair<std::string, Bytes>>& files) {
  Bytes archive;
  for (const auto& [path, content] : files) {
    char header[512] = {};
    std::strncpy(header, path.c_str(), 99);
    std::snprintf(header + 100, 8, "%07o", 0644u);
    std::snprintf(header + 124, 12, "%011llo", static_cast<unsigned long long>(content.size()));
    header[156] = '0';
    std::memcpy(header + 257, "ustar", 6);
    std::memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (char c : header) sum += static_cast<unsigned char>(c);
    std::snprintf(header + 148, 7, "%06o", sum);
    archive.insert(archive.end(), header, header + 512);
    archive.insert(archive.end(), content.begin(), content.end());
    archive.resize((archive.size() + 511) / 512 * 512);
  }
  archive.resize(archive.size() + 1024);
  return archive;
}

}  // namespace convoy::test
