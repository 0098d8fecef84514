#include "report/made_up/made_up_run.h"

#include <unistd.h>

namespace convoy {
namespace {

void add_ranks(Database& database, std::int64_t id, const MadeUpRun& run) {
  Statement rank = database.prepare(
      "INSERT INTO ranks (run, rank, role, host, pid, threads, wall_s) VALUES (?1, ?2, 'worker', "
      "?3, 1, 1, ?4)");
  Statement ledger = database.prepare("INSERT INTO ledger VALUES (?1, ?2, 1, ?3, ?4)");
  Statement wait = database.prepare("INSERT INTO waits VALUES (?1, 0, 1, 1, 2, ?2, ?3)");
  const double each_s = 0.001 * run.steps;
  for (int i = 0; i < run.workers; ++i) {
    rank.bind(id, i, "node" + std::to_string(i), 10 * each_s).run();
    ledger.bind(id, i, "load", each_s).run();
    ledger.bind(id, i, "forward", 2 * each_s).run();
    ledger.bind(id, i, "backward", (i == 0 ? 4 : 6) * each_s).run();
    ledger.bind(id, i, "wait", (i == 0 ? 2 : 0) * each_s).run();
    ledger.bind(id, i, "update", each_s).run();
  }
  if (run.workers > 1) wait.bind(id, run.steps, 2 * each_s).run();
}

void add_steps(Database& database, std::int64_t id, const MadeUpRun& run) {
  Statement step = database.prepare(
      "INSERT INTO steps VALUES (?1, ?2, ?3, 1, ?4, 1000000, 2000000, ?5, 0, ?6, 1000000, 0, ?7, "
      "2, "
      "NULL, ?8, ?9, ?10, 0.1, NULL)");
  const int share = run.batch / run.workers;
  for (int rank = 0; rank < run.workers; ++rank)
    for (int number = 1; number <= run.steps; ++number)
      step.bind(id, rank, number, std::int64_t(number - 1) * 10'000'000,
                rank == 0 ? 4'000'000 : 6'000'000, rank == 0 ? 2'000'000 : 0,
                rank == 0 ? std::optional(1) : std::nullopt, share, share / 2,
                (rank == 0 ? 1.0 : 3.0) / number)
          .run();
}

void add_layers(Database& database, std::int64_t id, const MadeUpRun& run) {
  Statement layer = database.prepare("INSERT INTO layers VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1e6)");
  Statement times = database.prepare("INSERT INTO layer_times VALUES (?1, 0, 1, ?2, ?3, ?4, ?5)");
  const char* names[] = {"input", "conv1", "conv2", "fc"};
  for (int node = 1; node < 4; ++node) {
    layer.bind(id, node, names[node], node < 3 ? "conv" : "dense", "8x8x8", 100 * node).run();
    times.bind(id, node, run.steps, 0.001 * node * run.steps, 0.002 * node * run.steps).run();
  }
}

void add_spans(Database& database, std::int64_t id, const MadeUpRun& run) {
  Statement span = database.prepare(
      "INSERT INTO spans VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?10, NULL, ?9, NULL)");
  for (const int step : {2, 16})
    for (int rank = 0; rank < run.workers; ++rank) {
      const std::int64_t begin = (step - 1) * 10'000'000LL;
      span.bind(id, rank, step, 0, "compute", "forward", begin, begin + 3'000'000, nullptr, 1)
          .run();
      span.bind(id, rank, step, 1, "communication", "all-reduce", begin + 3'000'000,
                begin + 9'000'000, 4096, nullptr)
          .run();
    }
}

void add_samples(Database& database, std::int64_t id, const MadeUpRun& run) {
  Statement resource = database.prepare(
      "INSERT INTO resources VALUES (?1, ?2, ?3, ?4, 300000000, 310000000, 0, 0, 0, 0, ?5, 0, ?4, "
      "2, "
      "0, 0, 0, 0, 0, 0, ?6, ?5, ?6, ?5, 0, 0, NULL)");
  Statement traffic = database.prepare("INSERT INTO traffic VALUES (?1, ?2, ?3, ?4, ?5, 1, ?5, 1)");
  for (int rank = 0; rank < run.workers; ++rank)
    for (int i = 0; i <= run.seconds; ++i) {
      resource.bind(id, rank, double(i), 0.5 * i, 100 * i, 1'000'000 * i).run();
      if (run.workers > 1)
        traffic.bind(id, rank, (rank + 1) % run.workers, double(i), 2'000'000 * i).run();
    }
}

}  // namespace

std::int64_t add_run(Store& store, const MadeUpRun& run) {
  Database& database = store.database();
  Transaction transaction(database);
  database
      .prepare(
          "INSERT INTO runs (name, state, started_unix_s, ended_unix_s, written_unix_s, folder, "
          "host, pid, model, data, precision, sync, algorithm, wire, transport, world, batch, "
          "epochs, seed, workers, servers, threads, parameters, train_samples, steps, wall_s, "
          "images_per_s, train_loss, test_loss, test_accuracy, verdict, configuration, "
          "environment, result) VALUES (?1, ?2, 1769860800, NULL, 1769860800, 'nowhere', "
          "'elsewhere', 1, 'mnist_cnn', 'mnist', 'bf16', ?3, 'ring', 'f32', 'shm', 'real', ?4, 1, "
          "?5, ?6, 0, 1, 690590, 60000, ?7, ?8, ?9, 0.04, 0.05, 0.9873, 'all is well', "
          "'{\"model\":\"mnist_cnn\",\"batch\":128,\"lr\":0.5}', '{\"commit\":\"abc\"}', "
          "'{\"weights_sha256\":\"00ff\"}')")
      .bind(run.name, run.state, run.sync, run.batch, run.seed, run.workers, run.steps,
            0.01 * run.steps, run.images_per_s)
      .run();
  const std::int64_t id = database.last_id();
  database
      .prepare(
          "INSERT INTO epochs VALUES (?1, 1, ?2, ?2, ?3, ?4, 0.1, 0.97, 0.05, 0.9873, NULL, 10000, "
          "60000, 0, 0)")
      .bind(id, 0.01 * run.steps, run.steps, run.images_per_s)
      .run();
  if (run.pid > 0) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    database
        .prepare(
            "UPDATE runs SET state = 'running', pid = ?2, host = ?3, started_unix_s = "
            "unixepoch(), written_unix_s = unixepoch() WHERE id = ?1")
        .bind(id, run.pid, std::string(host))
        .run();
  }
  add_ranks(database, id, run);
  add_steps(database, id, run);
  add_layers(database, id, run);
  add_spans(database, id, run);
  add_samples(database, id, run);
  if (run.sync != "allreduce")
    database.run(
        fmt::format("INSERT INTO staleness VALUES ({0}, 0, 1, 0, 30), ({0}, 1, 1, 2, 10)", id));
  database.run(fmt::format(
      "INSERT INTO latencies VALUES ({0}, 0, 1, 'all-reduce', 4, 0.02, 0.001, 0.01, 8192);"
      "INSERT INTO events VALUES ({0}, 1, 0.5, 0, 'note', 'it <b>happened</b>')",
      id));
  transaction.commit();
  return id;
}

}  // namespace convoy
