// Some rows of an IDX file: what a worker reads of a large one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "data/byte_source.h"
#include "data/cut.h"

namespace convoy {

// An array of which only some rows (indices of the first dimension) were read.
struct IdxRows {
  std::filesystem::path path;             // of the file that was read
  std::vector<std::uint32_t> dimensions;  // of the whole array
  std::vector<std::uint8_t> values;       // of rows cut.of(dimensions[0])
};

// Reads `file`, or `file`.gz where that is what there is, or returns false where neither exists.
// Only the header and the wanted rows are read, but of a gzipped file, which has no parts, all: a
// note in the log says so where the first of several parts was wanted. Throws DataError that names
// the file and what is wrong.
bool read_idx_rows(const std::filesystem::path& file, int dimensions, const Cut& cut,
                   const OpenBytes& open, IdxRows& rows);

}  // namespace convoy
