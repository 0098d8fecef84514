// made_up_store FILE RUNS STEPS [NAME [PID]]: adds made-up runs to a run store, for the tests of
// the page; with PID they are running, in that process of this machine. Each run has two workers
// and STEPS steps of each; worker counts and seeds vary.
#include <cstdlib>
#include <exception>

#include "report/made_up/made_up_run.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int runs = std::atoi(argv[2]), steps = std::atoi(argv[3]);
  try {
    convoy::Store store(argv[1], convoy::Access::create);
    for (int i = 0; i < runs; ++i) {
      const int workers = 1 << (i % 3);
      const std::string name = argc > 4 ? argv[4] : "mnist_cnn-mnist";
      convoy::add_run(store, {.name = fmt::format("{}-{}", name, i + 1),
                              .state = "finished",
                              .workers = workers,
                              .steps = 2 * steps / workers,
                              .seed = 1 + i / 3,
                              .images_per_s = 14000.0 * workers * (0.95 + 0.01 * (i % 7)),
                              .pid = argc > 5 ? std::atoi(argv[5]) : 0});
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "made_up_store: {}\n", error.what());
    return 1;
  }
  return 0;
}
