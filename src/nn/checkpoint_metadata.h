// The metadata of our two kinds of files, shared by those who write, read and list them.
#pragma once

#include <charconv>
#include <string>

#include "base/error.h"
#include "nn/safetensors.h"

namespace convoy {

inline constexpr int kCheckpointVersion = 1;
inline constexpr auto kVersionKey = "convoy_version";
inline constexpr auto kDigestKey = "weights_sha256";

// The text under `key`; throws DataError where there is none.
inline const std::string& metadata_text(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw DataError("{}: its metadata has no '{}'; the file was not written by convoy", file.name(),
                    key);
  return found->second;
}

// The whole number of 0 or more under `key`.
template <typename Number>
Number metadata_number(const SafetensorsFile& file, const std::string& key) {
  const std::string& text = metadata_text(file, key);
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw DataError("{}: its metadata has '{}' for '{}', which is not a whole number of 0 or more",
                    file.name(), printable(text), key);
  return number;
}

// Refuses files of a later convoy. Files without a version are of other programs, and are left to
// their readers.
inline void check_version(const SafetensorsFile& file) {
  if (file.metadata().contains(kVersionKey) &&
      metadata_number<int>(file, kVersionKey) > kCheckpointVersion)
    throw DataError(
        "{}: was written by a later convoy (version {} of the format, this one reads {})",
        file.name(), metadata_number<int>(file, kVersionKey), kCheckpointVersion);
}

}  // namespace convoy
