#include "nn/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "base/error.h"
#include "base/rng.h"
#include "nn/safetensors.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

// Stores weights back to front behind `padding` zeros, so that a test sees where stored and plain
// numbers are mixed up.
class BackwardLayout : public StoredLayout {
 public:
  BackwardLayout(std::size_t count, std::size_t padding) : count_(count), padding_(padding) {}
  std::size_t stored_count() const override { return count_ + padding_; }
  void to_plain(const float* stored, float* plain) const override {
    for (std::size_t i = 0; i < count_; ++i) plain[i] = stored[padding_ + count_ - 1 - i];
  }
  void from_plain(const float* plain, float* stored) const override {
    for (std::size_t i = 0; i < count_; ++i) stored[padding_ + count_ - 1 - i] = plain[i];
  }

 private:
  std::size_t count_, padding_;
};

class BackwardFamily : public Family {
 public:
  explicit BackwardFamily(std::size_t padding) : padding_(padding) {}
  std::string name() const override { return "backward"; }
  std::size_t value_bytes(const Shape& shape, int batch) const override {
    return shape.count() * std::size_t(batch) * sizeof(float);
  }
  std::unique_ptr<StoredLayout> weight_layout(const OpSpec& spec) const override {
    std::size_t count = std::size_t(spec.output.channels) * spec.inputs[0].count();
    if (const auto* convolution = std::get_if<Convolution>(&spec.layer))
      count = std::size_t(convolution->channels) * spec.inputs[0].channels * convolution->kernel *
              convolution->kernel;
    return std::make_unique<BackwardLayout>(count, padding_);
  }
  std::unique_ptr<Op> bind(const OpSpec&) const override { return nullptr; }
  bool folds_relu(const Layer&) const override { return false; }
  void add(std::byte*, const std::byte*, const Shape&, int) const override {}

 private:
  std::size_t padding_;
};

Network small_network(int classes = 10, int channels = 4) {
  Network network("small", {3, 8, 8});
  network.then("conv1",
               Convolution{.channels = channels, .kernel = 3, .padding = 1, .bias = false});
  network.then("bn1", BatchNorm{});
  network.then("relu", Relu{});
  network.then("fc", Dense{.features = classes});
  return network;
}

// A network with parameters and the state of an optimizer, all filled from a seed.
struct Trained {
  explicit Trained(std::uint64_t seed, Network made = small_network(), std::size_t padding = 5)
      : network(std::move(made)), parameters(network, BackwardFamily(padding), 2) {
    Rng rng(seed, Purpose::test);
    momentum.resize(parameters.values().size());
    for (const Parameter& parameter : parameters.list()) {
      std::vector<float> plain(parameter.spec.count());
      for (float& x : plain) x = rng.normal();
      parameters.import_values(parameter, plain);
      for (float& x : plain) x = rng.normal();
      parameters.import_to(momentum, parameter, plain);
    }
    for (Buffer& buffer : parameters.buffers())
      for (float& x : buffer.values) x = rng.normal();
  }

  std::vector<std::pair<std::string, std::span<float>>> arenas() {
    return {{"momentum", momentum}};
  }
  std::string everything() const {  // to see that nothing has changed
    return parameters.sha256() + std::string(reinterpret_cast<const char*>(momentum.data()),
                                             momentum.size() * sizeof(float));
  }

  Network network;
  Parameters parameters;
  std::vector<float> momentum;
};

class Checkpoints : public testing::Test {
 protected:
  Checkpoints() {
    folder_ = fs::path(testing::TempDir()) /
              fmt::format("convoy-checkpoint-{}-{}", ::getpid(),
                          testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  ~Checkpoints() override { fs::remove_all(folder_); }

  fs::path save(Trained& trained, int epoch = 3, std::int64_t step = 117) {
    return save_checkpoint(
        folder_, trained.network, trained.parameters, trained.arenas(),
        {.epoch = epoch, .step = step, .position = "{\"a\":1}", .configuration = "c"});
  }

  // Loading into `trained` fails with one line that holds `text`, and changes nothing.
  void refuses_weights(const fs::path& path, Trained& trained, LoadMode mode,
                       const std::string& text) {
    const std::string before = trained.everything();
    EXPECT_THAT([&] { load_weights(path, trained.network, trained.parameters, mode); },
                ThrowsMessage<DataError>(
                    AllOf(HasSubstr(path.string()), HasSubstr(text), Not(HasSubstr("\n")))));
    EXPECT_EQ(trained.everything(), before);
  }
  void refuses(const fs::path& path, Trained& trained, const std::string& text) {
    refuses(path, trained, trained.arenas(), text);
  }
  void refuses(const fs::path& path, Trained& trained, StateArenas arenas,
               const std::string& text) {
    const std::string before = trained.everything();
    EXPECT_THAT([&] { load_checkpoint(path, trained.network, trained.parameters, arenas); },
                ThrowsMessage<DataError>(AllOf(HasSubstr(folder_.string()), HasSubstr(text))));
    EXPECT_EQ(trained.everything(), before);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      found.push_back(entry.path().filename().string());
    return found;
  }

  // Rewrites a file of weights with some tensors changed: as F32 with other dims, renamed, dropped
  // or added.
  void rewrite(const fs::path& path, const std::function<void(std::vector<TensorSpec>&)>& change) {
    std::vector<TensorSpec> specs;
    const SafetensorsFile file(path);
    for (const StoredTensor& tensor : file.tensors()) specs.push_back(tensor);
    change(specs);
    SafetensorsWriter writer(path, specs, {});
    for (const TensorSpec& spec : specs)
      writer.write(std::vector<std::byte>(tensor_bytes(spec, "file")));
    writer.commit();
  }

  fs::path folder_;
};

TEST_F(Checkpoints, ResumeHasTheSameBits) {
  Trained saved(1);
  const fs::path path = save(saved);
  EXPECT_EQ(path.filename(), "epoch-0003-step-000117.safetensors");
  Trained loaded(2);
  ASSERT_NE(loaded.everything(), saved.everything());
  const CheckpointState state =
      load_checkpoint(path, loaded.network, loaded.parameters, loaded.arenas());
  EXPECT_EQ(state, (CheckpointState{3, 117, "{\"a\":1}", "c"}));
  EXPECT_EQ(loaded.everything(), saved.everything());
  EXPECT_EQ(read_checkpoint_state(path), state);
}

// Files are plain: another CPU stores the same numbers in another layout.
TEST_F(Checkpoints, AnotherLayoutReadsTheSameNumbers) {
  Trained saved(1);
  const fs::path path = save(saved);
  Trained loaded(2, small_network(), 37);
  load_checkpoint(path, loaded.network, loaded.parameters, loaded.arenas());
  EXPECT_EQ(loaded.parameters.sha256(), saved.parameters.sha256());
  for (std::size_t i = 0; i < saved.parameters.list().size(); ++i) {
    const Parameter &a = saved.parameters.list()[i], &b = loaded.parameters.list()[i];
    std::vector<float> plain_a(a.spec.count()), plain_b(b.spec.count());
    saved.parameters.export_from(saved.momentum, a, plain_a);
    loaded.parameters.export_from(loaded.momentum, b, plain_b);
    EXPECT_EQ(plain_a, plain_b) << a.spec.name;
  }
}

TEST_F(Checkpoints, WeightsHaveTorchvisionNamesAndShapes) {
  Trained saved(1);
  const SafetensorsFile file(save(saved));
  std::vector<std::string> tensors;
  for (const StoredTensor& tensor : file.tensors()) tensors.push_back(tensor.name);
  EXPECT_THAT(tensors,
              UnorderedElementsAre("conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean",
                                   "bn1.running_var", "fc.weight", "fc.bias"));
  EXPECT_THAT(file.find("conv1.weight")->dims, ElementsAre(4, 3, 3, 3));
  EXPECT_THAT(file.find("fc.weight")->dims, ElementsAre(10, 256));
  std::vector<float> stored(40), plain(40);
  const Parameter* bias = saved.parameters.find("fc.bias");
  ASSERT_NE(bias, nullptr);
  stored.resize(bias->spec.count());
  plain.resize(bias->spec.count());
  file.read(*file.find("fc.bias"), stored);
  saved.parameters.export_values(*bias, plain);
  EXPECT_EQ(stored, plain);
}

TEST_F(Checkpoints, InfoSaysWhatTheFileIs) {
  Trained saved(1);
  const CheckpointInfo info = read_checkpoint_info(save(saved));
  EXPECT_EQ(info.model, "small");
  EXPECT_EQ(info.input, (Shape{3, 8, 8}));
  EXPECT_EQ(info.classes, 10);

  const fs::path path = folder_ / "foreign.safetensors";
  SafetensorsWriter(path, {}, {}).commit();
  EXPECT_EQ(read_checkpoint_info(path).model, "");
  SafetensorsWriter(path, {}, {{"model", "m"}, {"input", "3x8"}, {"classes", "10"}}).commit();
  EXPECT_THAT([&] { read_checkpoint_info(path); }, ThrowsMessage<DataError>(HasSubstr("3x8")));
  SafetensorsWriter(path, {}, {{"model", "m"}, {"input", "3x8x8"}, {"classes", "-1"}}).commit();
  EXPECT_THAT([&] { read_checkpoint_info(path); }, ThrowsMessage<DataError>(HasSubstr("classes")));
  SafetensorsWriter(path, {}, {{"convoy_version", "99"}}).commit();
  EXPECT_THAT([&] { read_checkpoint_info(path); }, ThrowsMessage<DataError>(HasSubstr("later")));
}

TEST_F(Checkpoints, AnotherNetworkIsRefused) {
  Trained saved(1), wider(2, small_network(10, 8));
  const fs::path path = save(saved);
  refuses(path, wider, "does not fit small at 3x8x8 with 10 classes: tensor ");
  refuses_weights(path, wider, LoadMode::strict, "more tensors differ");
  refuses_weights(path, wider, LoadMode::transfer, "'conv1.weight' is 4x3x3x3 instead of 8x3x3x3");

  const fs::path other = folder_ / "other.safetensors";
  save_weights(other, saved.network, saved.parameters);
  rewrite(other, [](auto& specs) {
    std::erase_if(specs, [](auto& s) { return s.name == "bn1.running_var"; });
  });
  refuses_weights(other, saved, LoadMode::strict, "tensor 'bn1.running_var' is missing");
  save_weights(other, saved.network, saved.parameters);
  rewrite(other, [](auto& specs) { specs.push_back({.name = "layer9.weight", .dims = {1}}); });
  refuses_weights(other, saved, LoadMode::strict, "tensor 'layer9.weight' is not one of its own");
  refuses_weights(other, saved, LoadMode::transfer, "tensor 'layer9.weight' is not one of its own");
  rewrite(other, [](auto& specs) {
    specs.pop_back();
    specs[0].dtype = "I32";
  });
  refuses_weights(other, saved, LoadMode::strict, "is I32 instead of F32");
}

TEST_F(Checkpoints, AnotherHeadIsLeftFreshWhereAsked) {
  Trained saved(1), other(2, small_network(7));
  const fs::path path = save(saved);
  refuses_weights(path, other, LoadMode::strict, "--init takes it and leaves the head fresh");
  const Parameter* head = other.parameters.find("fc.weight");
  std::vector<float> before(head->spec.count()), after(head->spec.count());
  other.parameters.export_values(*head, before);
  EXPECT_THAT(load_weights(path, other.network, other.parameters, LoadMode::transfer),
              UnorderedElementsAre("fc.weight", "fc.bias"));
  other.parameters.export_values(*head, after);
  EXPECT_EQ(before, after);
  std::vector<float> a(108), b(108);
  saved.parameters.export_values(*saved.parameters.find("conv1.weight"), a);
  other.parameters.export_values(*other.parameters.find("conv1.weight"), b);
  EXPECT_EQ(a, b);
  EXPECT_EQ(saved.parameters.buffers()[1].values, other.parameters.buffers()[1].values);
}

TEST_F(Checkpoints, TransferTakesAHeadThatFits) {
  Trained saved(1), other(2);
  EXPECT_THAT(load_weights(save(saved), other.network, other.parameters, LoadMode::transfer),
              IsEmpty());
  EXPECT_EQ(saved.parameters.sha256(), other.parameters.sha256());
}

TEST_F(Checkpoints, TorchvisionFilesAreRead) {
  Trained saved(1);
  const fs::path path = folder_ / "torchvision.safetensors";
  save_weights(path, saved.network, saved.parameters);
  rewrite(path, [](auto& specs) {
    specs.insert(specs.begin(), {.name = "bn1.num_batches_tracked", .dtype = "I64", .dims = {}});
    specs.push_back({.name = "aux1.fc1.weight", .dims = {2, 2}});
  });
  EXPECT_THAT(load_weights(path, saved.network, saved.parameters, LoadMode::strict), IsEmpty());
}

// The kernels hold pointers to running statistics: loading must not move them.
TEST_F(Checkpoints, RunningStatisticsStayWhereTheyAre) {
  Trained saved(1), loaded(2);
  const float* before = loaded.parameters.buffers()[0].values.data();
  load_weights(save(saved), loaded.network, loaded.parameters, LoadMode::strict);
  EXPECT_EQ(loaded.parameters.buffers()[0].values.data(), before);
}

TEST_F(Checkpoints, MissingOrMismatchedStateIsRefused) {
  Trained first(1), second(2), loaded(3);
  const fs::path a = save(first, 1, 0), b = save(second, 2, 0);
  fs::copy_file(state_path(b), state_path(a), fs::copy_options::overwrite_existing);
  refuses(a, loaded, "resume from an older checkpoint");
  fs::remove(state_path(b));
  refuses(b, loaded, "--init");
  refuses(state_path(a), loaded, "without '.state'");
  refuses(folder_ / "none.safetensors", loaded, "No such file");
}

TEST_F(Checkpoints, AnotherOptimizerIsRefused) {
  Trained saved(1), loaded(2);
  const fs::path path = save(saved);
  refuses(path, loaded, StateArenas{},
          "has momentum of an optimizer, but this run's keeps no state");
  const std::vector<std::pair<std::string, std::span<float>>> adam = {{"adam_m", loaded.momentum},
                                                                      {"adam_v", loaded.momentum}};
  refuses(path, loaded, adam, "keeps adam_m, adam_v");
}

TEST_F(Checkpoints, DamagedWeightsAreNoticed) {
  Trained saved(1), loaded(2);
  const fs::path path = save(saved);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('\x7b');
  file.close();
  EXPECT_THAT([&] { load_checkpoint(path, loaded.network, loaded.parameters, loaded.arenas()); },
              ThrowsMessage<DataError>(HasSubstr("SHA-256")));
}

TEST_F(Checkpoints, DamagedStateIsRefused) {
  Trained saved(1), loaded(2);
  const fs::path path = save(saved);
  fs::resize_file(state_path(path), fs::file_size(state_path(path)) - 1);
  refuses(path, loaded, "truncated");
  fs::resize_file(state_path(path), 3);
  refuses(path, loaded, "too few");
}

TEST_F(Checkpoints, LatestIsTheNewestWholePair) {
  EXPECT_EQ(latest_checkpoint(folder_ / "none"), std::nullopt);
  EXPECT_EQ(latest_checkpoint(folder_), std::nullopt);
  Trained a(1), b(2);
  const fs::path first = save(a, 9, 5), second = save(a, 10, 0), third = save(b, 10, 7);
  EXPECT_EQ(latest_checkpoint(folder_), third);
  fs::copy_file(state_path(first), state_path(third), fs::copy_options::overwrite_existing);
  EXPECT_EQ(latest_checkpoint(folder_), second);
  fs::resize_file(second, 100);
  EXPECT_EQ(latest_checkpoint(folder_), first);
  fs::remove(second);
  EXPECT_EQ(latest_checkpoint(folder_), first);
}

TEST_F(Checkpoints, PruneKeepsTheNewestAndForeignFiles) {
  Trained trained(1);
  for (int epoch : {1, 2, 3, 10000}) save(trained, epoch, 0);
  std::ofstream(folder_ / "notes.txt") << "x";
  std::ofstream(folder_ / "epoch-best.safetensors") << "x";
  std::ofstream(folder_ / "epoch-0000-step-000004.state.safetensors") << "left by a crash";
  prune_checkpoints(folder_, 0);
  EXPECT_EQ(names().size(), 11u);
  prune_checkpoints(folder_, 2);
  EXPECT_THAT(names(), UnorderedElementsAre("epoch-0003-step-000000.safetensors",
                                            "epoch-0003-step-000000.state.safetensors",
                                            "epoch-10000-step-000000.safetensors",
                                            "epoch-10000-step-000000.state.safetensors",
                                            "notes.txt", "epoch-best.safetensors"));
  EXPECT_NO_THROW(prune_checkpoints(folder_ / "none", 2));
}

TEST_F(Checkpoints, UnwritableFolderIsNamed) {
  Trained trained(1);
  std::ofstream(folder_ / "file") << "x";
  EXPECT_THAT(
      [&] {
        save_checkpoint(folder_ / "file", trained.network, trained.parameters, trained.arenas(),
                        {});
      },
      ThrowsMessage<DataError>(HasSubstr((folder_ / "file").string())));
}

// A state that cannot be written leaves the weights of an earlier save of that name as they were.
TEST_F(Checkpoints, FailedSaveLeavesTheOldPair) {
  Trained a(1), b(2), loaded(3);
  const fs::path path = save(a);
  fs::create_symlink(
      "/dev/full", fmt::format("{}.{}.{}.part", state_path(path).string(), ::getpid(), ::gettid()));
  EXPECT_THROW(save(b), DataError);
  EXPECT_EQ(names().size(), 2u);
  load_checkpoint(path, loaded.network, loaded.parameters, loaded.arenas());
  EXPECT_EQ(loaded.everything(), a.everything());
}

}  // namespace
}  // namespace convoy
