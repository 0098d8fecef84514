#include "train/data_ledger.h"

#include <algorithm>

#include "base/check.h"
#include "base/error.h"

namespace convoy {

std::string with_commas(std::uint64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string DataCount::to_string() const {
  return fmt::format("{} seen, {} missing, {} twice", with_commas(seen), with_commas(missing),
                     with_commas(twice));
}

void DataLedger::start_epoch() { std::fill(times_.begin(), times_.end(), std::uint8_t{0}); }

void DataLedger::add(std::span<const std::uint32_t> samples) {
  for (std::uint32_t sample : samples) {
    CHECK(sample < times_.size(), "sample {} of {}", sample, times_.size());
    times_[sample] = std::uint8_t(std::min(times_[sample] + 1, 2));
  }
}

void DataLedger::set_times(std::span<const std::int64_t> times) {
  CHECK(times.size() == times_.size(), "{} samples, not {}", times.size(), times_.size());
  std::transform(times.begin(), times.end(), times_.begin(), [](std::int64_t number) {
    return std::uint8_t(std::min<std::int64_t>(number, 2));
  });
}

DataCount DataLedger::count() const {
  DataCount count;
  for (std::uint8_t times : times_) {
    count.seen += times > 0;
    count.missing += times == 0;
    count.twice += times > 1;
  }
  return count;
}

std::string DataLedger::save() const {
  std::string text;
  for (std::size_t i = 0; i < times_.size(); i += 2) {
    const int second = i + 1 < times_.size() ? times_[i + 1] : 0;
    text += "0123456789abcdef"[times_[i] | second << 2];
  }
  return text;
}

void DataLedger::restore(const std::string& text, const std::string& where) {
  if (text.size() != (times_.size() + 1) / 2)
    throw DataError("{}: its record of the epoch does not fit the {} samples of this data set",
                    where, times_.size());
  for (std::size_t i = 0; i < times_.size(); ++i) {
    const char digit = text[i / 2];
    const int pair = digit >= '0' && digit <= '9'   ? digit - '0'
                     : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                                    : 15;
    const int times = i % 2 ? pair >> 2 : pair & 3;
    if (times > 2) throw DataError("{}: its record of the epoch is damaged", where);
    times_[i] = std::uint8_t(times);
  }
}

}  // namespace convoy
