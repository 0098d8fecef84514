// Started by mpirun (tests/mpi.cmake), every rank runs the same cases at the same time.
#include "world/mpi/mpi_file.h"

#define OMPI_SKIP_MPICXX 1
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/part.h"
#include "world/mpi/mpi_world.h"

namespace convoy {
namespace {

// A file that the first rank makes and removes; all know its name.
class SharedFile {
 public:
  explicit SharedFile(std::size_t bytes) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    std::string name = (std::filesystem::temp_directory_path() / "convoy-mpi-XXXXXX").string();
    if (rank_ == 0) {
      ::close(::mkstemp(name.data()));
      std::ofstream file(name, std::ios::binary);
      for (std::size_t i = 0; i < bytes; ++i) file.put(char(byte_at(i)));
    }
    MPI_Bcast(name.data(), int(name.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    path_ = name;
  }
  ~SharedFile() {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_ == 0) std::filesystem::remove(path_);
  }
  const std::filesystem::path& path() const { return path_; }
  int rank() const { return rank_; }
  static std::uint8_t byte_at(std::size_t place) { return std::uint8_t(place * 31 + place / 251); }

 private:
  int rank_ = 0;
  std::filesystem::path path_;
};

class MpiFile : public testing::TestWithParam<std::size_t> {};

TEST_P(MpiFile, EveryRankReadsItsPart) {
  const int ranks = mpi_size();
  const SharedFile file(GetParam());
  const auto source = open_mpi_bytes(file.path());
  ASSERT_EQ(source->size(), GetParam());
  const Range part = part_of(GetParam(), ranks, file.rank());
  std::vector<std::uint8_t> bytes(part.count);
  source->read(part.begin, bytes);
  for (std::size_t i = 0; i < part.count; ++i)
    ASSERT_EQ(bytes[i], SharedFile::byte_at(part.begin + i)) << i;
  // Only the last reads something, then only the first, then all the same.
  const std::size_t count = std::min<std::size_t>(GetParam(), 5);
  std::vector<std::uint8_t> few, expected;
  for (std::size_t i = 0; i < count; ++i) expected.push_back(SharedFile::byte_at(i));
  for (const int reader : {ranks - 1, 0}) {
    few.assign(reader == file.rank() ? count : 0, 99);
    source->read(0, few);
    EXPECT_TRUE(few.empty() || few == expected);
  }
  few.assign(count, 99);
  source->read(0, few);
  EXPECT_EQ(few, expected);
}

TEST_P(MpiFile, ItsEndAndAMissingFileAreNamed) {
  mpi_size();
  const SharedFile file(GetParam());
  const auto source = open_mpi_bytes(file.path());
  std::vector<std::uint8_t> more(GetParam() + 1);
  try {
    source->read(0, more);
    ADD_FAILURE() << "read beyond the end";
  } catch (const DataError& error) {
    EXPECT_EQ(error.what(), file.path().string() + ": truncated: ends at byte " +
                                std::to_string(GetParam()) + " while it is read");
  }
  const std::string missing = file.path().string() + ".missing";
  try {
    open_mpi_bytes(missing);
    ADD_FAILURE() << "opened a file that is not there";
  } catch (const DataError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with(missing + ": MPI cannot open it: "))
        << error.what();
  }
}

std::vector<std::size_t> sizes() {
  if (!started_by_mpi()) return {};
  return {0, 1, 1000, 3'000'001};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MpiFile);
INSTANTIATE_TEST_SUITE_P(mpi, MpiFile, testing::ValuesIn(sizes()));

}  // namespace
}  // namespace convoy
