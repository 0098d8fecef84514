// Collects a set's files out of whatever holds them: folders, archives, packages, compressed or
// not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/catalog.h"

namespace convoy {

// Each file that is found is verified and written to the folder at once, so that memory holds one
// at a time.
class Gather {
 public:
  Gather(const CatalogSet& set, std::filesystem::path folder, std::set<std::string> missing,
         std::function<void(const std::string&)> progress);

  // A folder (searched six levels deep), a tar archive (gzipped or not), a Debian package or a
  // single file. Throws DataError where something in it is damaged or has a wrong checksum.
  void search(const std::filesystem::path& source);

  const std::set<std::string>& missing() const { return missing_; }

 private:
  void search_folder(const std::filesystem::path& source);
  void search_archive(const std::filesystem::path& source);
  void search_package(const std::filesystem::path& source);
  bool wanted(const std::string& path) const;
  // `path` tells which file it is, `from` is what errors call it.
  void take(const std::string& path, const std::string& from, std::vector<std::uint8_t> bytes);
  void take_picture(const std::string& path, const std::string& from,
                    std::vector<std::uint8_t> bytes);
  void convert_pictures();
  void put_in_place(const CatalogFile& file, const std::vector<std::uint8_t>& bytes,
                    const std::string& from);

  const CatalogSet& set_;
  std::filesystem::path folder_;
  std::set<std::string> missing_;
  std::function<void(const std::string&)> progress_;
  // CIFAR-10 as pictures: these wait for their labels.
  std::map<std::string, std::vector<std::uint8_t>>
      pictures_;  // by the name of the file they become
  std::vector<std::uint8_t> train_labels_, test_labels_;
};

}  // namespace convoy
