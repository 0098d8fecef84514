// Threads of the engine: one OpenMP team, shared with oneDNN, so that the two never oversubscribe
// the cores.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>

namespace convoy {

// How many threads parallel regions of the calling thread use. 0 to set: all cores this process may
// run on. Never more than OMP_THREAD_LIMIT.
void set_threads(int threads);
inline int threads() { return omp_get_max_threads(); }

// For main(), before anything else: threads that wait for others of the team spin for a tenth of a
// millisecond and then sleep, so that a program beside this one does not slow it down tenfold.
// OpenMP reads such settings once, before main; hence this starts the program anew, by the same
// arguments, unless its environment says how to wait.
void limit_spinning(char* const* arguments);

// Runs body(thread, threads) once on each thread of the team and waits for all.
template <typename Body>
void parallel(Body&& body) {
#pragma omp parallel
  body(omp_get_thread_num(), omp_get_num_threads());
}

// The same on at most `most` threads.
template <typename Body>
void parallel(int most, Body&& body) {
  const int wanted = std::min(threads(), most);
#pragma omp parallel num_threads(wanted)
  body(omp_get_thread_num(), omp_get_num_threads());
}

// Cuts [0, count) into one contiguous range per thread: body(begin, end). Ranges are multiples of
// `grain` but the last. Small work (count <= grain) stays on the calling thread.
template <typename Body>
void parallel_for(std::size_t count, std::size_t grain, Body&& body) {
  const std::size_t grains = (count + grain - 1) / grain;
  if (grains <= 1 || threads() == 1) {
    if (count > 0) body(std::size_t{0}, count);
    return;
  }
  parallel([&](int thread, int team) {
    const std::size_t begin = grains * thread / team * grain;
    const std::size_t end = std::min(count, grains * (thread + 1) / team * grain);
    if (begin < end) body(begin, end);
  });
}

}  // namespace convoy
