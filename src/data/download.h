// `convoy data get`: fetches a data set, verifies every file and puts it in place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/catalog.h"

namespace convoy {

struct GetOptions {
  std::filesystem::path root = "data";
  std::filesystem::path from =
      {};  // an archive, a file or a folder that the user has; empty: fetch it
  std::function<void(const std::string& what)> progress = [](const std::string&) {};
};

struct GotFile {
  std::string name;
  std::uint64_t bytes = 0;
  bool was_there = false;  // with the right checksum before we began
};

struct GetResult {
  std::filesystem::path folder;
  std::vector<GotFile> files;
  std::string source;  // what the new files came from; empty where all were there
};

// Files that are there with the right checksum are kept, so that an interrupted get goes on where
// it stopped; each of the others is put in place whole, after its checksum has been verified, or
// not at all. Throws DataError that names what is missing or wrong and the remedy.
GetResult get_data(const CatalogSet& set, const GetOptions& options);

struct SetStatus {
  std::filesystem::path folder;
  int files_there = 0;  // of set.files; by size, or compressed, without a checksum
  std::uint64_t bytes = 0;
  bool ready = false;
};

SetStatus data_status(const CatalogSet& set, const std::filesystem::path& root);

}  // namespace convoy
