// convoy train: trains a network, from flags or a file.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/config_flags.h"
#include "cli/ranks.h"
#include "cli/serve.h"
#include "kernels/cpu.h"
#include "measure/store.h"
#include "train/cluster.h"
#include "train/records.h"
#include "train/resume.h"
#include "train/run.h"
#include "train/setup.h"
#include "world/job.h"
#include "world/mpi/mpi_world.h"

namespace convoy {
namespace {

constexpr std::size_t kFiberStackBytes = std::size_t{1} << 20;

constexpr const char* kExamples = R"(Examples:
  convoy train --model mnist_cnn --data mnist --optimizer adam --lr 0.001 --epochs 5
  convoy train --config experiments/cifar10-resnet18.toml --epochs 20   (flags win)
  convoy train --resume runs/RUN                                        (goes on with the same bits)
  convoy train --config experiments/mnist_cnn.toml --workers 2          (the same, on two workers)
  convoy train --config run.toml --hosts hosts.txt                      (on other machines)
  convoy train --model resnet18 --data photos/ --init resnet18.safetensors --input 3x224x224)";

struct Arguments {
  std::string config_file;
  std::string resume;
  bool json = false;
  bool print_config = false;
  const CLI::Option* serve_given = nullptr;
  std::string serve;
  GivenFlags flags;
};

TrainRequest make_request(const Arguments& arguments) {
  TrainRequest request{.config = {}, .given = {}, .resume = arguments.resume};
  if (!arguments.config_file.empty()) {
    const auto bytes = read_file(arguments.config_file, kMaxConfigBytes);
    request.given =
        read_toml(request.config, {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                  arguments.config_file);
  }
  for (const auto& [field, text] : arguments.flags) {
    set_from_text(request.config, *field, text);
    request.given.push_back(field);
  }
  return request;
}

bool is_given(const TrainRequest& request, const std::string& name) {
  return std::any_of(request.given.begin(), request.given.end(),
                     [&](const ConfigField* field) { return field->name == name; });
}

// How many workers, and what between them: as asked, or as the run that goes on had it.
RankOptions rank_options(const TrainRequest& request) {
  TrainConfig config = request.config;
  bool said = is_given(request, "workers");
  const bool in_job = job_of_process() || started_by_mpi();
  if (!request.resume.empty() && !in_job)
    config = resumed_config(stored_config(find_checkpoint(request.resume)), request.config,
                            request.given);
  // In a job that goes on with a run, only worker 0 looks into the checkpoint, and finds out there.
  if (!request.resume.empty()) said = !in_job;
  const int servers = config.sync == "ps" ? int(config.servers) : 0;
  return {.size = said ? int(config.workers) + servers : 0,
          .transport = config.transport,
          .hosts = config.hosts,
          .default_size = 1 + servers,
          .servers = servers,
          .place = config.place,
          .needed = servers > 0 ? 1 : 0,
          .size_flag = servers > 0 ? "--workers and --servers" : "--workers"};
}

using WorkerBody = std::function<void(const TrainRequest&, World)>;

// Workers as processes of their own, or as threads of this one.
void run_real(const TrainRequest& request, RankOptions ranks, const WorkerBody& body) {
  const bool in_job = job_of_process() || started_by_mpi();
  if (!in_job && ranks.hosts.empty() && !ranks.place.empty())
    throw ConfigError("--place {}: there is but this host: add --hosts FILE, or --world sim",
                      ranks.place);
  if (!in_job && ranks.size <= 1 && ranks.default_size == 1 && ranks.hosts.empty())
    ranks.transport = "inproc";
  SharedData data;
  TrainRequest own = request;
  if (!in_job && ranks.transport == "inproc") {
    own.shared_data = &data;
    own.threads = std::max(1, cpu().cores / std::max(1, ranks.size));
  }
  run_ranks(ranks, [&](World world) { body(own, world); });
}

// Workers as fibers of this process, on a virtual clock.
void run_simulated(const TrainRequest& request, const WorkerBody& body) {
  if (request.config.cluster.empty())
    throw ConfigError("--world sim needs --cluster FILE, which describes the cluster");
  TrainingCluster described = read_cluster(request.config.cluster);
  if (is_given(request, "workers") && request.config.workers != described.cluster.ranks)
    throw ConfigError("--workers {}: {} describes {} workers: leave --workers away",
                      request.config.workers, request.config.cluster, described.cluster.ranks);
  if (request.config.sync == "ps")
    add_servers(described, int(request.config.servers), request.config.place);
  SharedData data;
  const SimOptions options{.seed = std::uint64_t(request.config.seed),
                           .stack_bytes = kFiberStackBytes};
  run_sim(described.cluster, options, [&](World world) {
    TrainRequest own = request;
    own.shared_data = &data;
    own.images_per_s = described.images_per_s[std::size_t(world.transport.rank())];
    own.message_s_per_byte = described.message_s_per_byte;
    own.load_s = described.load_s[std::size_t(world.transport.rank())];
    own.update_s_per_byte = described.update_s_per_byte;
    body(own, world);
  });
}

void report(const TrainResult& result, bool json) {
  if (json) print_answer(result.answer);
  if (!result.finished) {
    tell(stderr, fmt::format("convoy: stopped and saved; go on with: convoy train --resume {}\n",
                             result.folder.string()));
    throw Interrupted();
  }
}

// Where the run is recorded: as asked, or as the run that goes on had it.
std::string store_of(const TrainRequest& request) {
  const TrainConfig config = request.resume.empty()
                                 ? request.config
                                 : resumed_config(stored_config(find_checkpoint(request.resume)),
                                                  request.config, request.given);
  return store_path(config);
}

void run_train(const Arguments& arguments) {
  TrainRequest request = make_request(arguments);
  if (arguments.print_config) {
    check_config(request.config);
    fmt::print("{}", to_toml(request.config));
    return;
  }
  const RankOptions ranks = rank_options(request);
  const std::optional<Job> job = job_of_process();
  // What can be refused before processes are started.
  if (!job && request.resume.empty() && is_given(request, "workers")) {
    check_config(request.config);
    check_workers(request.config);
  }
  const InterruptGuard interrupt(!job || job->rank == 0);
  std::optional<TrainResult> result;  // of the leading worker, if that is in this process
  StoreWriter writer;
  request.writer = &writer;
  request.transport = transport_name(ranks);
  const bool serves = arguments.serve_given->count() > 0;
  const LiveOptions page = parse_serve(arguments.serve);
  std::unique_ptr<LiveServer> server;
  const auto body = [&](const TrainRequest& asked, World world) {
    if (serves && world.transport.rank() == 0) server = serve_meanwhile(page, store_of(asked));
    TrainResult own = train(asked, world, interrupt, arguments.json ? stderr : stdout);
    if (own.leads) result = std::move(own);
  };
  if (request.config.world == "sim")
    run_simulated(request, body);
  else
    run_real(request, ranks, body);
  if (result) report(*result, arguments.json);
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train a network");
  const auto arguments = std::make_shared<Arguments>();  // lives as long as the callback
  command
      ->add_option("--config", arguments->config_file,
                   "TOML file with any of the settings below; flags win")
      ->type_name("FILE");
  command->add_option("--resume", arguments->resume, "go on with a run, or from a checkpoint")
      ->type_name("DIR|FILE");
  command->add_flag("--json", arguments->json,
                    "end standard output with the result as one JSON object");
  arguments->serve_given =
      command
          ->add_option("--serve", arguments->serve,
                       fmt::format("show it live meanwhile, by default on port {}", kDefaultPort))
          ->type_name("[[ADDRESS:]PORT]")
          ->expected(0, 1);
  command->add_flag("--print-config", arguments->print_config,
                    "print the configuration as TOML, and do no more");
  for (const ConfigField& field : config_fields())
    add_field_flag(*command, field, arguments->flags);
  command->footer(kExamples);
  command->callback([arguments] { run_train(*arguments); });
}

}  // namespace convoy
