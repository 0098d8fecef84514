#include "world/mpi/mpi_file.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>

#include "base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kMostAtOnce = 1 << 30;  // counts are int

class MpiBytes final : public ByteSource {
 public:
  explicit MpiBytes(const std::filesystem::path& path) : path_(path) {
    expect(MPI_File_open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_RDONLY, MPI_INFO_NULL, &file_),
           "open");
    MPI_Offset size = 0;
    expect(MPI_File_get_size(file_, &size), "read the size of");
    size_ = std::size_t(size);
  }

  // Closing is for all ranks at once. When an error passes through they are not all here, and the
  // job is about to end.
  ~MpiBytes() override {
    if (std::uncaught_exceptions() == exceptions_) MPI_File_close(&file_);
  }
  MpiBytes(const MpiBytes&) = delete;
  MpiBytes& operator=(const MpiBytes&) = delete;

  std::size_t size() const override { return size_; }

  void read(std::size_t offset, std::span<std::uint8_t> bytes) override {
    if (offset > size_ || bytes.size() > size_ - offset) end_at(size_);
    // As many rounds as the rank with the most bytes needs.
    unsigned long own = (bytes.size() + kMostAtOnce - 1) / kMostAtOnce, rounds = 0;
    expect(MPI_Allreduce(&own, &rounds, 1, MPI_UNSIGNED_LONG, MPI_MAX, MPI_COMM_WORLD), "read");
    for (unsigned long round = 0; round < rounds; ++round) {
      const std::size_t some = std::min(kMostAtOnce, bytes.size());
      MPI_Status status;
      expect(MPI_File_read_at_all(file_, MPI_Offset(offset), bytes.data(), int(some), MPI_BYTE,
                                  &status),
             "read");
      int got = 0;
      MPI_Get_count(&status, MPI_BYTE, &got);
      if (std::size_t(got) != some) end_at(offset + std::size_t(std::max(got, 0)));
      offset += some;
      bytes = bytes.subspan(some);
    }
  }

 private:
  // Open MPI itself does not always tell: of a collective read it may report what was asked for.
  [[noreturn]] void end_at(std::size_t offset) const {
    throw DataError("{}: truncated: ends at byte {} while it is read", path_.string(), offset);
  }

  void expect(int code, const char* what) const {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw DataError("{}: MPI cannot {} it: {}", path_.string(), what,
                    std::string_view(text, std::size_t(length)));
  }

  std::filesystem::path path_;
  const int exceptions_ = std::uncaught_exceptions();
  MPI_File file_ = MPI_FILE_NULL;
  std::size_t size_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> open_mpi_bytes(const std::filesystem::path& path) {
  return std::make_unique<MpiBytes>(path);
}

}  // namespace convoy
