// Says once that somebody without the job's key knocks, however often it happens.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace convoy {

class StrangerLog {
 public:
  explicit StrangerLog(std::string where) : where_(std::move(where)) {}
  void note() {
    if (count_++ == 0)
      spdlog::warn("{}: refused somebody who does not belong to this job; not told again", where_);
  }
  int count() const { return count_; }

 private:
  std::string where_;
  int count_ = 0;
};

}  // namespace convoy
