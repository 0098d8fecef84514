// TensorBoard's event files: records of scalars that grow while a run goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace convoy {

class TensorBoardFile {
 public:
  // Makes the folder and a new file in it. Throws DataError.
  explicit TensorBoardFile(const std::filesystem::path& folder);

  using Scalars = std::vector<std::pair<std::string, double>>;  // tag and value
  // Appends one event; it is in the file when this returns.
  void add(std::int64_t step, const Scalars& scalars);

  const std::filesystem::path& path() const { return path_; }

 private:
  void write(std::string_view event);

  std::filesystem::path path_;
  std::ofstream file_;
};

// CRC-32C (Castagnoli), as in iSCSI.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace convoy
