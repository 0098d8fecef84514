// convoy bench step, with one worker and with several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program.h"

namespace convoy {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::vector<std::string> step(const std::string& threads) {
  return {"bench", "step",        "--model", "shallow", "--batch", "16",    "--threads",
          threads, "--precision", "f32",     "--steps", "3",       "--json"};
}

Ran bench(const std::vector<std::string>& more) {
  std::vector<std::string> words = step("1");
  words.insert(words.end(), more.begin(), more.end());
  return run_convoy(words);
}

TEST(BenchStep, AnswersForOneWorkerAndForSeveral) {
  for (const char* workers : {"1", "2"})
    for (const char* transport : {"shm", "inproc"}) {
      const Ran ran = bench({"--workers", workers, "--transport", transport});
      ASSERT_EQ(ran.code, 0) << ran.err;
      const json answer = ran.answer();
      EXPECT_EQ(answer.at("workers"), std::stoi(workers));
      EXPECT_EQ(answer.at("batch"), 16);
      EXPECT_EQ(answer.at("steps"), 3);
      EXPECT_GT(answer.at("images_per_s").get<double>(), 0);
      EXPECT_GE(answer.at("images_per_s_best"), answer.at("images_per_s"));
    }
}

TEST(BenchStep, UsesNoMoreThreadsThanOpenMpAllows) {
  const Ran ran = run_convoy(step("2"), {.environment = {"OMP_THREAD_LIMIT=1"}});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.answer().at("threads"), 1);
}

TEST(BenchStep, TellsThePassesOfALayerApart) {
  const json answer = bench({}).answer();
  int split = 0;
  for (const json& layer : answer.at("layers")) {
    const double data = layer.at("backward_data_ms"), weights = layer.at("backward_weights_ms");
    EXPECT_LE(data + weights, layer.at("backward_ms").get<double>() * 1.001) << layer;
    const bool product = layer.at("kind") == "convolution" || layer.at("kind") == "dense";
    EXPECT_EQ(layer.at("forward_gflops") > 0, product) << layer;
    EXPECT_EQ(layer.at("backward_weights_gflops") > 0, product) << layer;
    EXPECT_EQ(layer.at("backward_data_gflops") > 0, data > 0) << layer;
    if (!product) continue;
    EXPECT_GT(weights, 0) << layer;
    split += data > 0;
  }
  EXPECT_GT(split, 0);
  EXPECT_EQ(answer.at("layers")[0].at("backward_data_ms"), 0) << "the image has no gradient";
}

TEST(BenchStep, RefusesWhatWorkersCannotDo) {
  const Ran uneven = bench({"--workers", "3"});
  EXPECT_EQ(uneven.code, 2);
  EXPECT_TRUE(uneven.one_line()) << uneven.err;
  EXPECT_THAT(uneven.err, HasSubstr("--batch 16"));
  const Ran layers = bench({"--workers", "2", "--layers"});
  EXPECT_EQ(layers.code, 2);
  EXPECT_TRUE(layers.one_line()) << layers.err;
}

}  // namespace
}  // namespace convoy
