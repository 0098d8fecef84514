// Batch norm over the samples of several workers: models in threads of their own, each with a part
// of a batch, against one model with all of it.
#include <gtest/gtest.h>

#include <barrier>
#include <map>
#include <thread>

#include "nn/layer_cases.h"
#include "nn/model_test_support.h"
#include "nn/zoo.h"

namespace convoy {
namespace {

using testing::random_batch;
using testing::relative_error;
using testing::shake;

// Workers in threads add up in the order of their ranks.
class Meeting {
 public:
  explicit Meeting(int workers) : barrier_(workers), given_(workers) {}

  class Member : public StatisticsExchange {
   public:
    Member(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
    void sum(std::span<double> values) override {
      meeting_.given_[rank_].assign(values.begin(), values.end());
      meeting_.barrier_.arrive_and_wait();
      std::fill(values.begin(), values.end(), 0.0);
      for (const std::vector<double>& given : meeting_.given_) {
        ASSERT_EQ(given.size(), values.size()) << "workers are at different layers";
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += given[i];
      }
      meeting_.barrier_.arrive_and_wait();
      ++calls;
    }
    int calls = 0;

   private:
    Meeting& meeting_;
    int rank_;
  };

 private:
  std::barrier<> barrier_;
  std::vector<std::vector<double>> given_;
};

Batch part_of(const Network& network, const Batch& batch, int first, int size) {
  const std::size_t image = network.input_shape().count();
  Batch part;
  part.images.assign(batch.images.begin() + first * image,
                     batch.images.begin() + (first + size) * image);
  part.labels.assign(batch.labels.begin() + first, batch.labels.begin() + first + size);
  part.samples.assign(batch.samples.begin() + first, batch.samples.begin() + first + size);
  return part;
}

using Tensors = std::map<std::string, std::vector<float>>;

struct Result {
  std::vector<float> logits;
  Tensors gradients, buffers;
  std::vector<NodeId> before, done;
  int exchanges = 0;
};

// Two steps, so that what the first left behind would show in the second.
Result run_worker(const Network& network, Precision precision, StatisticsExchange* exchange,
                  const std::vector<Batch>& steps, int whole) {
  Model model(network, {.batch = std::max(1, steps[0].size()),
                        .precision = precision,
                        .threads = 1,
                        .exchange = exchange});
  shake(model.parameters());
  Result result;
  for (const Batch& batch : steps) {
    result.before.clear();
    result.done.clear();
    model.forward(
        batch, [&](NodeId node) { result.before.push_back(node); }, whole);
    model.backward([&](NodeId node) { result.done.push_back(node); });
  }
  result.logits.assign(model.logits().begin(), model.logits().end());
  for (const Parameter& parameter : model.parameters().list()) {
    std::vector<float>& plain = result.gradients[parameter.spec.name];
    plain.resize(parameter.spec.count());
    model.parameters().export_gradients(parameter, plain);
  }
  for (const Buffer& buffer : model.parameters().buffers())
    result.buffers[buffer.name] = buffer.values;
  return result;
}

std::vector<Result> run_workers(const Network& network, Precision precision,
                                const std::vector<int>& shares, const std::vector<Batch>& steps) {
  Meeting meeting(int(shares.size()));
  std::vector<Result> results(shares.size());
  std::vector<std::thread> threads;
  int first = 0;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    threads.emplace_back([&, rank, first] {
      std::vector<Batch> mine;
      for (const Batch& batch : steps) mine.push_back(part_of(network, batch, first, shares[rank]));
      Meeting::Member member(meeting, int(rank));
      results[rank] = run_worker(network, precision, &member, mine, steps[0].size());
      results[rank].exchanges = member.calls;
    });
    first += shares[rank];
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

struct Tolerance {
  double value, gradient;
};

void expect_as_one(const Network& written, Precision precision, const std::vector<int>& shares,
                   const Tolerance& tolerance) {
  const Network network = without_dropout(written);
  int whole = 0;
  for (int share : shares) whole += share;
  const std::vector<Batch> steps = {random_batch(network, whole, 7),
                                    random_batch(network, whole, 8)};
  Result one;  // in a thread of its own: the number of OpenMP threads belongs to the caller
  std::thread([&] { one = run_worker(network, precision, nullptr, steps, whole); }).join();
  const std::vector<Result> workers = run_workers(network, precision, shares, steps);

  std::vector<float> logits;
  Tensors sums;
  for (const Result& worker : workers) {
    logits.insert(logits.end(), worker.logits.begin(), worker.logits.end());
    for (const auto& [name, plain] : worker.gradients) {
      sums[name].resize(plain.size());
      for (std::size_t i = 0; i < plain.size(); ++i) sums[name][i] += plain[i];
    }
    EXPECT_EQ(worker.buffers, workers[0].buffers) << "workers evaluate alike, bit for bit";
    EXPECT_EQ(worker.before, one.before);
    EXPECT_EQ(worker.done, one.done);
    EXPECT_GT(worker.exchanges, 0);
    EXPECT_EQ(worker.exchanges, workers[0].exchanges);
  }
  ASSERT_EQ(logits.size(), one.logits.size());
  EXPECT_LT(relative_error(logits, one.logits), tolerance.value) << "logits";
  for (const auto& [name, plain] : one.buffers)
    EXPECT_LT(relative_error(workers[0].buffers.at(name), plain), tolerance.value) << name;
  for (const auto& [name, plain] : one.gradients) {
    double norm = 0;
    for (float value : plain) norm += double(value) * value;
    // A bias in front of a batch norm has no effect: its gradient is rounding only.
    if (std::sqrt(norm) < 1e-6) continue;
    EXPECT_LT(relative_error(sums.at(name), plain), tolerance.gradient) << name;
  }
}

Network residual() {
  for (const testing::Case& one : testing::layer_cases())
    if (one.name == "residual") return one.network;
  return Network("missing", {1, 1, 1});
}

const std::vector<std::vector<int>> kShares = {{24, 40}, {0, 64}, {64, 0}, {5, 0, 59}};

constexpr Tolerance kF32{.value = 1e-5, .gradient = 1e-3};
constexpr Tolerance kBf16{.value = 0.02, .gradient = 0.1};
// Gradients of deep networks: a ReLU that falls the other way moves them by more than rounding, as
// the square root of it.
constexpr Tolerance kDeepF32{.value = 1e-4, .gradient = 0.02};
constexpr Tolerance kDeepBf16{.value = 0.03, .gradient = 0.4};

TEST(SharedNorm, ResidualF32) {
  for (const auto& shares : kShares) expect_as_one(residual(), Precision::f32, shares, kF32);
}

TEST(SharedNorm, ResidualBf16) {
  for (const auto& shares : kShares) expect_as_one(residual(), Precision::bf16, shares, kBf16);
}

// Few numbers per channel, odd channels, no ReLU; a batch norm of a vector.
TEST(SharedNorm, SmallForms) {
  Network vector("vector", {3, 4, 4});
  vector.then("fc1", Dense{.features = 20});
  vector.then("bn", BatchNorm{.epsilon = 1e-3f, .momentum = 0.3f});
  vector.then("fc2", Dense{.features = 5});
  const Network odd = testing::around({3, 5, 5}, 20, {BatchNorm{}});
  for (const Network& network : {vector, odd})
    for (const std::vector<int>& shares : {std::vector<int>{3, 6}, std::vector<int>{9, 0}}) {
      expect_as_one(network, Precision::f32, shares, kF32);
      expect_as_one(network, Precision::bf16, shares, kBf16);
    }
}

TEST(SharedNorm, SlowResnet18F32) {
  const Network network = make_network("resnet18", {3, 16, 16}, 10);
  for (const auto& shares : {kShares[0], kShares[1]})
    expect_as_one(network, Precision::f32, shares, kDeepF32);
}

TEST(SharedNorm, SlowResnet18Bf16) {
  const Network network = make_network("resnet18", {3, 16, 16}, 10);
  for (const auto& shares : {kShares[0], kShares[1]})
    expect_as_one(network, Precision::bf16, shares, kDeepBf16);
}

// Backward ends at the first trained layer; what comes before still shares its statistics in
// forward.
TEST(SharedNorm, FrozenLayers) {
  Network network = residual();
  network.freeze("stem");
  network.freeze("conv1");
  network.freeze("bn1");
  expect_as_one(network, Precision::f32, {2, 0, 7}, kF32);
}

TEST(SharedNorm, AMemberAloneIsAsWithoutExchange) {
  const Network network = residual();
  const std::vector<Batch> steps = {random_batch(network, 33)};
  const std::vector<Result> alone = run_workers(network, Precision::bf16, {33}, steps);
  Result local;
  std::thread([&] { local = run_worker(network, Precision::bf16, nullptr, steps, 33); }).join();
  EXPECT_EQ(alone[0].logits, local.logits);
  EXPECT_EQ(alone[0].gradients, local.gradients);
  EXPECT_EQ(alone[0].buffers, local.buffers);
}

// Without an exchange as well: hooks are called, gradients are zero, running statistics stay.
TEST(Model, EmptyBatch) {
  const Network network = residual();
  Model model(network, {.batch = 4, .threads = 1});
  Batch empty;
  const Batch full = random_batch(network, 4);
  std::vector<NodeId> before[2], done[2];
  model.forward(full, [&](NodeId node) { before[0].push_back(node); });
  model.backward([&](NodeId node) { done[0].push_back(node); });
  const std::vector<Buffer> buffers = model.parameters().buffers();
  const Outcome outcome = model.forward(empty, [&](NodeId node) { before[1].push_back(node); });
  EXPECT_TRUE(model.backward([&](NodeId node) { done[1].push_back(node); }).empty());
  EXPECT_EQ(outcome.samples, 0);
  EXPECT_EQ(outcome.loss_sum, 0);
  EXPECT_EQ(model.evaluate(empty).samples, 0);
  EXPECT_EQ(before[0], before[1]);
  EXPECT_EQ(done[0], done[1]);
  EXPECT_TRUE(model.logits().empty());
  for (float gradient : model.parameters().gradients()) ASSERT_EQ(gradient, 0);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    EXPECT_EQ(buffers[i].values, model.parameters().buffers()[i].values);
}

}  // namespace
}  // namespace convoy
