// All workers of a run, as one of them sees them: who it is, and what all of them do together. All
// make the same calls in the same order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sync/comm_task.h"

namespace convoy {

class Workers {
 public:
  Workers(World world, const CommunicatorOptions& options) : comm_(world, options) {}

  int rank() const { return comm_.rank(); }
  int size() const { return comm_.size(); }
  bool leads() const { return rank() == 0; }  // writes files, talks to people
  CommTask& comm() { return comm_; }
  Runtime& runtime() { return comm_.runtime(); }

  void sum(std::span<std::int64_t> values);
  void sum(std::span<float> values);
  // What worker 0 has, everybody has afterwards.
  void spread(std::span<std::byte> bytes);
  std::string spread(const std::string& text);
  // Everybody's text, by rank.
  std::vector<std::string> gather(const std::string& own);
  void close() { comm_.close(10); }

 private:
  CommTask comm_;
};

}  // namespace convoy
