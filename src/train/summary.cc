#include "train/summary.h"

#include <algorithm>

#include "base/log.h"
#include "kernels/parallel.h"
#include "measure/verdict.h"
#include "train/records.h"

namespace convoy {
namespace {
constexpr std::size_t kSparkColumns = 40;
}  // namespace

std::string counted(std::int64_t number, const char* thing) {
  return fmt::format("{} {}{}", with_commas(std::uint64_t(number)), thing, number == 1 ? "" : "s");
}

std::string batch_text(std::int64_t batch, std::span<const int> weights, std::size_t samples) {
  const bool equal = std::all_of(weights.begin(), weights.end(),
                                 [&](int weight) { return weight == weights.front(); });
  const std::int64_t workers = std::int64_t(weights.size());
  std::string text = fmt::format("{}", batch);
  if (equal && batch % workers == 0) {
    text += fmt::format(" = {} x {}", workers, batch / workers);
  } else {
    std::vector<std::size_t> shares;
    for (int i = 0; i < int(workers); ++i) {
      const BatchShare share = share_of(weights, i);
      shares.push_back(share.begin(std::size_t(batch), share.to) -
                       share.begin(std::size_t(batch), share.from));
    }
    text += fmt::format(" = {}", fmt::join(shares, " + "));
  }
  const std::int64_t whole = std::int64_t(samples) / batch, rest = std::int64_t(samples) % batch;
  text += ", " + counted(whole, "step");
  if (rest > 0) text += fmt::format(" + {}", rest);
  return text;
}

namespace {

// Where there are several workers, or the rate follows the batch.
void print_workers(const RunParts& parts, std::FILE* human) {
  const TrainConfig& config = parts.config;
  const bool servers = config.sync == "ps";
  if (parts.workers->size() > 1 || config.invariant || servers) {
    const std::vector<int> weights = parse_balance(config.balance, parts.workers->size()).weights;
    std::string way = fmt::format("gradients {}, {} all-reduce", config.wire, config.algorithm);
    if (config.invariant)
      way = fmt::format("gradients of {} shards, summed exactly, {} all-reduce",
                        config.virtual_shards, config.algorithm);
    if (servers)
      way = fmt::format("gradients {}, {}, policy {}",
                        config.invariant
                            ? fmt::format("of {} shards, summed exactly", config.virtual_shards)
                            : config.wire,
                        counted(config.servers, "server"), config.policy);
    if (parts.shares_weights) way = "weights in shared memory, each worker updates its part";
    tell(human,
         fmt::format("{}: batch {}; {}\n", counted(parts.workers->size(), "worker"),
                     batch_text(config.batch, weights, parts.data->train->whole_size()), way));
  }
  if (config.base_batch > 0)
    tell(human,
         fmt::format("learning rate {:g} = {:g} x {} / {} (batch / base batch){}\n",
                     schedule_options(config).rate, config.lr, config.batch, config.base_batch,
                     config.warmup_epochs > 0
                         ? fmt::format(", after {:g} epochs of warm-up", config.warmup_epochs)
                         : ""));
}

}  // namespace

void print_headline(const RunParts& parts, std::FILE* human) {
  const Network& network = parts.model->network();
  const std::int64_t steps =
      std::int64_t(parts.train_loader->steps_per_epoch()) * parts.config.epochs;
  tell(human,
       fmt::format("{}: {} parameters, {} ({} of {}), batch {}, {} in {}, {}, {}\n", network.name(),
                   with_commas(network.parameter_count()), parts.config.data,
                   counted(std::int64_t(parts.data->train->whole_size()), "training sample"),
                   network.input_shape().to_string(), parts.config.batch, counted(steps, "step"),
                   counted(parts.config.epochs, "epoch"),
                   precision_name(parts.model->options().precision), counted(threads(), "thread")));
  if (!parts.start_name.empty() && parts.state.epochs < parts.config.epochs)
    tell(human, fmt::format("going on from {}: epoch {}, after {}\n", parts.start_name,
                            parts.state.epochs + 1, counted(parts.state.steps, "step")));
  print_workers(parts, human);
  std::fflush(human);
}

nlohmann::json make_answer(const RunParts& parts, const RunView& view, const std::string& run) {
  const RunState& state = view.state;
  nlohmann::json answer = {{"test_accuracy", nullptr},
                           {"test_loss", nullptr},
                           {"train_loss", nullptr},
                           {"images_per_s", view.images_per_s},
                           {"wall_s", view.time.wall_s()},
                           {"read_s", parts.read_s},
                           {"epochs", state.epochs},
                           {"steps", state.updates},
                           {"workers", parts.workers->size()},
                           {"servers", parts.config.sync == "ps" ? parts.config.servers : 0},
                           {"weights_sha256", parts.model->parameters().sha256()},
                           {"run", run.empty() ? parts.folder.filename().string() : run},
                           {"checkpoint", (parts.folder / "final.safetensors").string()},
                           {"model", parts.config.model},
                           {"data", parts.config.data},
                           {"parameters", parts.model->network().parameter_count()},
                           {"precision", precision_name(parts.model->options().precision)},
                           {"threads", threads()},
                           {"phases_s", phases_json(view.time)},
                           {"history", history_json(state.history)}};
  if (view.more.is_object()) answer.update(view.more);
  if (state.history.empty()) return answer;
  const EpochRecord& last = state.history.back();
  answer["train_loss"] = last.train_loss;
  answer["seen"] = last.data.seen;
  answer["missing"] = last.data.missing;
  answer["twice"] = last.data.twice;
  if (last.test) {
    answer["test_accuracy"] = last.test->accuracy;
    answer["test_loss"] = last.test->loss;
    if (last.test->flip_accuracy) answer["test_accuracy_flip"] = *last.test->flip_accuracy;
    if (last.test->shift_accuracy) answer["test_accuracy_shift"] = *last.test->shift_accuracy;
  }
  return answer;
}

void print_summary(const RunParts& parts, const RunView& view, const Findings& findings,
                   std::FILE* human) {
  const EpochRecord& last = view.state.history.back();
  const TimeLedger& time = view.time;
  std::vector<std::pair<std::string, std::string>> rows;
  if (last.test)
    rows.push_back({"test accuracy",
                    fmt::format("{:.2f} %  (loss {:.4f}, {} samples)", 100 * last.test->accuracy,
                                last.test->loss, with_commas(std::uint64_t(last.test->samples)))});
  if (last.test && last.test->flip_accuracy)
    rows.push_back({"  flips averaged", fmt::format("{:.2f} %", 100 * *last.test->flip_accuracy)});
  if (last.test && last.test->shift_accuracy)
    rows.push_back({"  and shifts", fmt::format("{:.2f} %", 100 * *last.test->shift_accuracy)});
  rows.push_back({"train loss", fmt::format("{:.4f}  {}", last.train_loss,
                                            sparkline(view.losses, kSparkColumns))});
  rows.push_back({"data", last.data.to_string()});
  rows.push_back(
      {"speed", fmt::format("{} images/s", with_commas(std::uint64_t(view.images_per_s)))});
  rows.push_back({"wall time", fmt::format("{:.1f} s", time.wall_s())});
  for (std::size_t i = 0; i < kPhaseNames.size(); ++i)
    rows.push_back(
        {fmt::format("  {}", kPhaseNames[i]),
         fmt::format("{:8.1f} s  {:5.1f} %", time.seconds(Phase(i)),
                     time.wall_s() > 0 ? 100 * time.seconds(Phase(i)) / time.wall_s() : 0.0)});
  rows.push_back({"  of it measuring",
                  fmt::format("{:8.1f} s  {:5.1f} %", findings.cost_s,
                              time.wall_s() > 0 ? 100 * findings.cost_s / time.wall_s() : 0.0)});
  rows.push_back({"weights", (parts.folder / "final.safetensors").string()});
  if (!findings.run.empty())
    rows.push_back(
        {"record", fmt::format("{} in {}{}", findings.run, store_path(parts.config),
                               findings.recorded ? "" : ", not all of it: see the warning")});
  tell(human, fmt::format("\n{}", summary_table(rows)));
  if (!findings.verdict.empty()) tell(human, fmt::format("\n  {}\n", findings.verdict));
}

}  // namespace convoy
