// Which samples an epoch has seen: "60,000 seen, 0 missing, 0 twice".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace convoy {

struct DataCount {
  std::size_t seen = 0;  // different samples
  std::size_t missing = 0;
  std::size_t twice = 0;  // samples that came more than once
  std::string to_string() const;
};

class DataLedger {
 public:
  explicit DataLedger(std::size_t samples) : times_(samples) {}

  void start_epoch();
  void add(std::span<const std::uint32_t> samples);
  DataCount count() const;
  // How often each sample was seen, up to twice; those of several workers add up.
  std::vector<std::int64_t> times() const { return {times_.begin(), times_.end()}; }
  void set_times(std::span<const std::int64_t> times);

  // An unfinished epoch as text (two bits a sample, in hexadecimal), for checkpoints. restore()
  // throws DataError that begins with `where` for a text of another data set.
  std::string save() const;
  void restore(const std::string& text, const std::string& where);

 private:
  std::vector<std::uint8_t> times_;  // 0, 1, or 2 for more
};

// 60000 as "60,000".
std::string with_commas(std::uint64_t number);

}  // namespace convoy
