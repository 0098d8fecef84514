// Gradients are pushed to the servers as backward finishes them, and the weights that they become
// are pulled while backward and the next forward run, the first layer first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sync/ps/client.h"
#include "sync/shard_store.h"
#include "sync/strategy.h"
#include "sync/wire_code.h"

namespace convoy {

class ServerStrategy final : public SyncStrategy {
 public:
  struct Parts {
    ServerClient& client;
    const ServerLayout& layout;
    Parameters& parameters;
    ShardStore* shards = nullptr;  // whose sums are exact; null: plain gradients
    bool overlap = true;           // false: nothing is sent before backward has ended
    std::string wire = "f32";      // as in the servers' job
  };
  // All outlive the strategy.
  explicit ServerStrategy(Parts parts);

  // What the gradients of the coming step are of.
  struct Step {
    std::uint32_t epoch = 0;
    int samples = 0;
    int mean_over = 0;
    bool extra = false;  // see WorkerHead
  };
  void begin_step(const Step& step) {
    step_ = step;
    generation_.reset();
  }

  void bucket_ready(const Bucket& bucket) override;
  void end_step(const UpdateRate& rate, std::vector<ArenaRange> moved) override;
  void await(const Bucket& bucket) override;
  void apply(const Bucket& bucket) override;

  // Brings all weights to those that the servers have. After all buckets were awaited; waits.
  void pull_all();

 private:
  void push(std::uint32_t slice);
  void push_shards();
  void wait(std::uint32_t slice);
  std::span<float> place_of(const ServerSlice& slice);
  WorkerHead head();

  Parts parts_;
  std::vector<std::vector<std::uint32_t>> slices_of_;  // by bucket
  std::vector<char> under_way_;                        // by bucket
  std::vector<int> ready_;                             // buckets that wait for the end of backward
  Step step_;
  std::optional<std::uint32_t> generation_;           // of the step's weights
  std::uint32_t fed_back_ = 0;                        // the generation that residual_ is of
  std::unique_ptr<WireCode> code_;                    // null: gradients travel as they lie
  std::vector<std::vector<std::uint32_t>> messages_;  // by slice, of code_
  std::vector<std::uint32_t> zeros_;                  // places of the arena that stay zero
  std::vector<float> residual_;                       // of the arena: what is still to be said
  std::vector<std::vector<float>> bodies_;            // by slice, of shards
  std::vector<float> received_;                       // weights and statistics, of shards
};

}  // namespace convoy
