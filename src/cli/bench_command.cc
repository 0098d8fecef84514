// convoy bench step: whole training steps on synthetic data, timed one by one.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "cli/bench_allreduce.h"
#include "cli/bench_ps.h"
#include "cli/bench_workers.h"
#include "cli/command.h"
#include "cli/ranks.h"
#include "kernels/parallel.h"
#include "kernels/peak.h"
#include "nn/model.h"
#include "nn/zoo.h"
#include "optim/optimizer.h"

namespace convoy {
namespace {

struct Options {
  std::string model = "resnet18";
  std::string input;
  int classes = 0;
  int batch = 128;
  std::string precision = "auto";
  int threads = 0;
  int workers = 1;
  std::string transport;
  double seconds = 5;
  int steps = 0;
  bool layers = false;
  bool json = false;
};

struct Measurement {
  std::vector<double> step_s;     // sorted
  double update_s = 0;            // mean per step
  std::vector<LayerTime> layers;  // mean per step
  double peak_gflops = 0;

  double best() const { return step_s.front(); }
  double median() const { return step_s[step_s.size() / 2]; }
};

Batch synthetic_batch(const Network& network, int size) {
  Batch batch;
  Rng rng(1, Purpose::synthetic);
  batch.images.resize(network.input_shape().count() * size);
  for (float& pixel : batch.images) pixel = 2 * rng.uniform() - 1;
  for (int i = 0; i < size; ++i) {
    batch.labels.push_back(std::int32_t(rng.below(std::uint32_t(network.classes()))));
    batch.samples.push_back(std::uint32_t(i));
  }
  return batch;
}

Measurement measure(Model& model, const Options& options) {
  const Batch batch = synthetic_batch(model.network(), options.batch);
  auto optimizer =
      make_optimizer({.kind = "sgd", .momentum = 0.9f, .weight_decay = 1e-4f}, model.parameters());
  Measurement measured;
  std::int64_t updates = 0;
  const auto step = [&] {
    model.forward(batch);
    auto moved = model.backward({}, optimizer->in_backward(1e-4f, ++updates));
    const double start = now_s();
    optimizer->update_others(std::move(moved), 1e-4f, updates);
    measured.update_s += now_s() - start;
  };
  step();
  step();
  measured.update_s = 0;
  model.profile(true);
  const double start = now_s();
  while (options.steps > 0 ? int(measured.step_s.size()) < options.steps
                           : measured.step_s.size() < 3 || now_s() - start < options.seconds) {
    const double before = now_s();
    step();
    measured.step_s.push_back(now_s() - before);
  }
  const double count = double(measured.step_s.size());
  measured.update_s /= count;
  measured.layers = model.layer_times();
  for (LayerTime& layer : measured.layers) {
    layer.forward_s /= count;
    layer.backward_s /= count;
    layer.split.data_s /= count;
    layer.split.weights_s /= count;
  }
  std::sort(measured.step_s.begin(), measured.step_s.end());
  measured.peak_gflops =
      model.options().precision == Precision::bf16 ? gemm_bf16_gflops() : gemm_f32_gflops();
  return measured;
}

// The same between workers, of which this is one.
Measurement measure(Model& model, const Options& options, World world) {
  const Batch part = synthetic_batch(model.network(), model.options().batch);
  Measurement measured;
  measured.step_s = time_worker_steps(
      world, model,
      {.part = part, .global = options.batch, .seconds = options.seconds, .steps = options.steps});
  std::sort(measured.step_s.begin(), measured.step_s.end());
  return measured;
}

// A step is forward, backward-data and backward-weights of every layer, the first layer's
// backward-data left out.
double step_operations(const Network& network, int batch) {
  double multiply_adds = 3 * network.forward_flops();
  for (const Node& node : network.nodes())
    if (!node.inputs.empty() && node.inputs[0] == 0) multiply_adds -= network.forward_flops(node);
  return 2 * multiply_adds * batch;
}

long peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

// GFLOP/s of one layer's passes; 0: no such pass. Where a layer makes both gradients at once,
// `weights` counts both.
struct LayerRates {
  double forward = 0, data = 0, weights = 0;
};

LayerRates layer_rates(const Network& network, const LayerTime& layer, int batch) {
  const Node& node = network.node(layer.node);
  const double operations = 2 * network.forward_flops(node) * batch / 1e9;
  const auto rate = [&](double passes, double seconds) {
    return seconds > 0 ? passes * operations / seconds : 0;
  };
  const bool split = layer.split.weights_s > 0, first = !node.inputs.empty() && node.inputs[0] == 0;
  return {
      .forward = rate(1, layer.forward_s),
      .data = rate(1, layer.split.data_s),
      .weights = split ? rate(1, layer.split.weights_s) : rate(first ? 1 : 2, layer.backward_s)};
}

void print_layers(const Model& model, const Measurement& measured) {
  const Network& network = model.network();
  fmt::print("{:<28} {:<16} {:>14} {:>10} {:>11} {:>17} {:>6} {:>7}\n", "layer", "kind", "output",
             "forward ms", "backward ms", "GFLOP/s: forward", "data", "weights");
  for (const LayerTime& layer : measured.layers) {
    const Node& node = network.node(layer.node);
    const LayerRates rates = layer_rates(network, layer, model.options().batch);
    const auto text = [](double rate) { return rate > 0 ? fmt::format("{:.0f}", rate) : ""; };
    fmt::print("{:<28} {:<16} {:>14} {:>10.3f} {:>11.3f} {:>17} {:>6} {:>7}\n", node.name,
               layer_kind(node.layer), node.shape.to_string(), layer.forward_s * 1e3,
               layer.backward_s * 1e3, text(rates.forward), text(rates.data), text(rates.weights));
  }
  fmt::print("{:<28} {:<16} {:>14} {:>10} {:>11.3f}\n", "(optimizer)", "sgd, momentum", "", "",
             measured.update_s * 1e3);
}

// Of workers: the whole batch, and no layers.
nlohmann::json answer(const Model& model, const Measurement& measured, const Options& options) {
  const Network& network = model.network();
  return {{"model", network.name()},
          {"input", network.input_shape().to_string()},
          {"batch", options.batch},
          {"precision", precision_name(model.options().precision)},
          {"family", model.family().name()},
          {"threads", threads()},
          {"workers", options.workers},
          {"steps", measured.step_s.size()},
          {"images_per_s", options.batch / measured.median()},
          {"images_per_s_best", options.batch / measured.best()},
          {"step_ms", measured.median() * 1e3},
          {"step_ms_best", measured.best() * 1e3},
          {"gflops", step_operations(network, options.batch) / measured.median() / 1e9},
          {"peak_rss_bytes", peak_rss_bytes()}};
}

nlohmann::json answer(const Model& model, const Measurement& measured) {
  const Network& network = model.network();
  const int batch = model.options().batch;
  const double operations = step_operations(network, batch);
  nlohmann::json layers = nlohmann::json::array();
  for (const LayerTime& layer : measured.layers) {
    const Node& node = network.node(layer.node);
    const LayerRates rates = layer_rates(network, layer, batch);
    layers.push_back({{"name", node.name},
                      {"kind", layer_kind(node.layer)},
                      {"output", node.shape.to_string()},
                      {"forward_ms", layer.forward_s * 1e3},
                      {"backward_ms", layer.backward_s * 1e3},
                      {"backward_data_ms", layer.split.data_s * 1e3},
                      {"backward_weights_ms", layer.split.weights_s * 1e3},
                      {"forward_gflops", rates.forward},
                      {"backward_data_gflops", rates.data},
                      {"backward_weights_gflops", rates.weights}});
  }
  return {{"model", network.name()},
          {"input", network.input_shape().to_string()},
          {"batch", batch},
          {"precision", precision_name(model.options().precision)},
          {"family", model.family().name()},
          {"threads", threads()},
          {"workers", 1},
          {"steps", measured.step_s.size()},
          {"images_per_s", batch / measured.median()},
          {"images_per_s_best", batch / measured.best()},
          {"step_ms", measured.median() * 1e3},
          {"step_ms_best", measured.best() * 1e3},
          {"update_ms", measured.update_s * 1e3},
          {"gflops", operations / measured.median() / 1e9},
          {"peak_gflops", measured.peak_gflops},
          {"peak_share", operations / measured.median() / 1e9 / measured.peak_gflops},
          {"peak_rss_bytes", peak_rss_bytes()},
          {"layers", layers}};
}

Model make_bench_model(const Options& options) {
  const Shape input = options.input.empty() ? zoo_default_input(options.model)
                                            : parse_shape(options.input, "--input");
  const int classes = options.classes > 0 ? options.classes : input.height > 64 ? 1000 : 10;
  return Model(make_network(options.model, input, classes),
               {.batch = options.batch / options.workers,
                .precision = parse_precision(options.precision),
                .threads = options.threads});
}

void print_case(const Options& options, const Model& model) {
  const Network& network = model.network();
  fmt::print("{} {} ({} classes), batch {}{}, {} ({}), {} thread{}\n", options.model,
             network.input_shape().to_string(), network.classes(), options.batch,
             options.workers > 1
                 ? fmt::format(" = {} x {}", options.workers, options.batch / options.workers)
                 : "",
             precision_name(model.options().precision), model.family().name(), threads(),
             threads() == 1 ? "" : "s");
}

void print_speed(const Options& options, const Measurement& measured) {
  fmt::print("{:.1f} images/s (best {:.1f}), {:.2f} ms a step (best {:.2f}) over {} step{}",
             options.batch / measured.median(), options.batch / measured.best(),
             measured.median() * 1e3, measured.best() * 1e3, measured.step_s.size(),
             measured.step_s.size() == 1 ? "" : "s");
}

void run_worker(const Options& options, World world) {
  const bool leads = world.transport.rank() == 0;
  Model model = make_bench_model(options);
  if (leads) print_case(options, model);
  const Measurement measured = measure(model, options, world);
  if (!leads) return;
  print_speed(options, measured);
  fmt::print("\n");
  if (options.json) print_answer(answer(model, measured, options));
}

void run(const Options& options) {
  if (std::isnan(options.seconds)) throw ConfigError("--seconds must be a number, not nan");
  if (options.workers > 1) {
    if (options.batch % options.workers != 0)
      throw ConfigError("--batch {} cannot be divided among --workers {}: choose a multiple",
                        options.batch, options.workers);
    if (options.layers) throw ConfigError("--layers is for one worker: leave it or --workers away");
    return run_ranks(
        {.size = options.workers, .transport = options.transport, .size_flag = "--workers"},
        [&](World world) { run_worker(options, world); });
  }
  Model model = make_bench_model(options);
  print_case(options, model);
  const Measurement measured = measure(model, options);
  const double operations = step_operations(model.network(), options.batch);
  if (options.layers) print_layers(model, measured);
  print_speed(options, measured);
  fmt::print(
      "; {:.0f} GFLOP/s, {:.0f} % of the {:.0f} that a matrix product reaches here; peak memory "
      "{:.0f} MiB\n",
      operations / measured.median() / 1e9,
      100 * operations / measured.median() / 1e9 / measured.peak_gflops, measured.peak_gflops,
      double(peak_rss_bytes()) / (1 << 20));
  if (options.json) print_answer(answer(model, measured));
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure parts of Convoy on this machine");
  bench->require_subcommand(1);
  CLI::App* step = bench->add_subcommand("step", "Time whole training steps on synthetic data");
  auto options =
      std::make_shared<Options>();  // outlives this function: CLI11 writes to it when it parses
  step->add_option("--model", options->model, "Network, see convoy zoo")->capture_default_str();
  step->add_option("--input", options->input,
                   "Shape of an image, CxHxW; the network's own if left out");
  step->add_option("--classes", options->classes, "Number of classes; 1000 above 64 px, else 10")
      ->check(CLI::Range(1, 1000000));
  step->add_option("--batch", options->batch, "Images per step")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  step->add_option("--precision", options->precision, "auto, f32 or bf16")->capture_default_str();
  step->add_option("--threads", options->threads, "Threads of each worker; 0: all cores")
      ->check(CLI::Range(0, 4096));
  step->add_option("--workers", options->workers, "Processes that share every batch")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  step->add_option("--transport", options->transport, "Between workers: inproc, shm or zmq")
      ->check(CLI::IsMember({"inproc", "shm", "zmq"}));
  step->add_option("--seconds", options->seconds, "How long to measure")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 3600.0));
  step->add_option("--steps", options->steps, "Measure this many steps instead")
      ->check(CLI::Range(1, 1000000));
  step->add_flag("--layers", options->layers, "Print the time of each layer and pass");
  step->add_flag("--json", options->json, "End with one JSON object on one line");
  step->footer(
      "Examples:\n  convoy bench step --model resnet18 --input 3x32x32 --batch 128 --precision f32 "
      "--threads 2 --layers\n"
      "  convoy bench step --model vgg16 --input 3x32x32 --batch 64 --workers 2 --threads 1");
  step->callback([options] { run(*options); });
  add_bench_allreduce(*bench);
  add_bench_ps(*bench);
  bench->footer(
      "Examples:\n  convoy bench step --model mnist_cnn --batch 128\n"
      "  convoy bench allreduce -n 2 --transport shm\n"
      "  convoy bench ps --servers 2 --workers 2");
}

}  // namespace convoy
