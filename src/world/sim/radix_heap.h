// A priority queue for times that never go back: a monotone radix heap (Ahuja, Mehlhorn, Orlin,
// Tarjan 1990). An entry lies in the bucket of the highest bit in which its time differs from the
// last time taken; bucket 0 holds the entries of exactly that time. When it is empty, the lowest
// other bucket is spread anew over those below it, so every entry moves at most 64 times in its
// life and mostly once or twice.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace convoy {

class RadixHeap {
 public:
  struct Entry {
    std::uint64_t time;
    std::uint64_t key;
  };

  // With seed 0, entries of one time leave in the order they came; with another, in an order that
  // the seed decides.
  explicit RadixHeap(std::uint64_t seed) : random_(seed) {}

  void push(Entry entry) {  // its time must not lie before the last one taken
    const int bucket = bucket_of(entry.time);
    buckets_[bucket].push_back(entry);
    if (bucket != 0) filled_ |= std::uint64_t{1} << (bucket - 1);
  }

  bool pop(Entry& entry) {
    std::vector<Entry>& now = buckets_[0];
    if (taken_ == now.size() && !advance()) return false;
    if (random_ != 0 && now.size() - taken_ > 1)
      std::swap(now[taken_], now[taken_ + next_random() % (now.size() - taken_)]);
    entry = now[taken_++];
    return true;
  }

 private:
  int bucket_of(std::uint64_t time) const { return 64 - std::countl_zero(time ^ last_); }

  bool advance() {
    buckets_[0].clear();
    taken_ = 0;
    if (filled_ == 0) return false;
    const int lowest = std::countr_zero(filled_) + 1;
    std::vector<Entry>& from = buckets_[lowest];
    last_ = std::min_element(from.begin(), from.end(), [](const Entry& a, const Entry& b) {
              return a.time < b.time;
            })->time;
    filled_ &= filled_ - 1;
    for (const Entry& entry : from) push(entry);  // all of them to lower buckets
    from.clear();
    return true;
  }

  std::uint64_t next_random() {  // xorshift64
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
  }

  std::array<std::vector<Entry>, 65> buckets_;
  std::size_t taken_ = 0;     // of bucket 0
  std::uint64_t last_ = 0;    // the time of bucket 0
  std::uint64_t filled_ = 0;  // bit b: bucket b + 1 is not empty
  std::uint64_t random_;
};

}  // namespace convoy
