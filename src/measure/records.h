// What a rank notes while it runs: fixed-size records in memory, which a StoreWriter puts into the
// run store. Numbers that add up (ledger, waits, layers, latencies, staleness) are what came since
// the last time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "measure/phase.h"

namespace convoy {

// A row of `steps`, see docs/store.md.
struct StepRecord {
  std::int64_t step = 0;
  std::int64_t begin_ns = 0;
  // load, forward, backward, communication, wait, update, other
  std::int64_t load_ns = 0, forward_ns = 0, backward_ns = 0, communication_ns = 0, wait_ns = 0,
               update_ns = 0, other_ns = 0;
  std::int64_t wait_operation = -1;
  std::int32_t wait_rank = -1, wait_node = -1;
  std::int32_t rank = 0, epoch = 0;
  std::int32_t samples = 0, correct = 0;
  std::int64_t staleness = -1;       // -1: none
  std::int64_t longest_wait_ns = 0;  // not stored
  double loss = 0, learning_rate = 0;
};

struct LedgerRecord {
  std::int32_t rank = 0, epoch = 0;
  std::int32_t phase = 0, unused = 0;
  double seconds = 0;
};

struct WaitRecord {
  std::int32_t rank = 0, epoch = 0;
  std::int32_t for_rank = -1, node = -1;
  std::int64_t count = 0;
  double seconds = 0;
};

struct LayerRecord {
  std::int32_t rank = 0, epoch = 0;
  std::int32_t node = 0, unused = 0;
  std::int64_t steps = 0;
  double forward_s = 0, backward_s = 0;
};

enum class Lane : std::int32_t { compute, communication, optimizer };
inline constexpr const char* kLaneNames[] = {"compute", "communication", "optimizer"};

// Of one sampled step. On the lane of communication `operation` is the number of the job, the same
// on all ranks, and `phase` says nothing.
struct SpanRecord {
  std::int64_t step = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t operation = -1, bytes = -1;
  std::int32_t rank = 0, number = 0;
  Lane lane = Lane::compute;
  std::int32_t phase = 0;
  std::int32_t node = -1, peer = -1;
};

struct ResourceRecord {
  std::int64_t rank = 0;
  double at_s = 0;
  double cpu_s = 0;
  std::int64_t memory_bytes = 0, peak_memory_bytes = 0;
  std::int64_t read_operations = 0, write_operations = 0, read_bytes = 0, write_bytes = 0;
  std::int64_t switches = 0, forced_switches = 0;
  double host_cpu_s = 0;
  std::int64_t host_cores = 0, host_memory_bytes = 0, host_memory_total_bytes = 0;
  std::int64_t disk_read_operations = 0, disk_write_operations = 0, disk_read_bytes = 0,
               disk_write_bytes = 0;
  std::int64_t sent_bytes = 0, sent_packets = 0, received_bytes = 0, received_packets = 0;
  std::int64_t loopback_bytes = 0, loopback_packets = 0;
  double throttled_s = -1;  // -1: no quota
};

struct TrafficRecord {
  std::int32_t rank = 0, peer = 0;
  double at_s = 0;
  std::int64_t sent_bytes = 0, sent_messages = 0, received_bytes = 0, received_messages = 0;
};

struct StalenessRecord {
  std::int32_t rank = 0, epoch = 0;
  std::int64_t behind = 0, count = 0;
};

enum class TimedOperation : std::int32_t { push, pull, update, all_reduce };
inline constexpr const char* kTimedOperationNames[] = {"push", "pull", "update", "all-reduce"};

struct LatencyRecord {
  std::int32_t rank = 0, epoch = 0;
  TimedOperation operation = TimedOperation::push;
  std::int32_t unused = 0;
  std::int64_t count = 0, bytes = 0;
  double sum_s = 0, least_s = 0, most_s = 0;
};

// What one or several ranks have noted and nobody has written yet.
struct Records {
  std::vector<StepRecord> steps;
  std::vector<LedgerRecord> ledger;
  std::vector<WaitRecord> waits;
  std::vector<LayerRecord> layers;
  std::vector<SpanRecord> spans;
  std::vector<ResourceRecord> resources;
  std::vector<TrafficRecord> traffic;
  std::vector<StalenessRecord> staleness;
  std::vector<LatencyRecord> latencies;

  // Calls `use` with each list, always in the same order.
  template <typename Use>
  void each(const Use& use) {
    use(steps), use(ledger), use(waits), use(layers), use(spans), use(resources), use(traffic),
        use(staleness), use(latencies);
  }
  std::size_t count();
  void append(Records&& more);

  // As bytes for another process of the same program, and back. Throws TransportError for bytes
  // that no pack() made.
  std::vector<std::byte> pack();
  static Records unpack(std::span<const std::byte> bytes);
};

}  // namespace convoy
