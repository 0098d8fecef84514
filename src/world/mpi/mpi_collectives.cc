#include "world/mpi/mpi_collectives.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

namespace convoy {

void expect_success(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw TransportError(fmt::format("MPI: {}: {}", what, std::string_view(text, length)));
}

namespace {

// Ends the job, with a reason, if it is not called off in time: MPI's blocking calls know no
// deadline. Until then it keeps in touch with the other ranks, which its rank cannot.
class Watchdog {
 public:
  Watchdog(double timeout_s, Presence& presence, std::string what)
      : presence_(presence), thread_([this, timeout_s, what = std::move(what)] {
          watch(std::min(timeout_s, 1e8), what);
        }) {}
  ~Watchdog() {
    {
      std::lock_guard lock(mutex_);
      is_off_ = true;
    }
    called_off_.notify_one();
    thread_.join();
  }

 private:
  void watch(double timeout_s, const std::string& what) {
    const double end_s = now_s() + timeout_s;
    std::unique_lock lock(mutex_);
    for (double left_s = timeout_s; left_s > 0; left_s = end_s - now_s()) {
      const std::chrono::duration<double> pause(std::min(left_s, kTellEvery_s));
      if (called_off_.wait_for(lock, pause, [this] { return is_off_; })) return;
      presence_.keep_in_touch();
    }
    const std::vector<int> absent = presence_.absent(timeout_s / 2);
    const std::string why = absent.empty()
                                ? "every rank came, and yet it did not end"
                                : fmt::format("rank{} {} never came", absent.size() > 1 ? "s" : "",
                                              fmt::join(absent, ", "));
    tell(stderr, fmt::format("convoy: {}: {} within {} s\n", what, why, timeout_s));
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  Presence& presence_;
  std::mutex mutex_;
  std::condition_variable called_off_;
  bool is_off_ = false;
  std::thread thread_;
};

constexpr std::size_t kLargeBytes = 64 << 10;

// MPI_Allreduce: Open MPI's own choice for small buffers, its ring for large ones (the default at 1
// Gbit/s takes twice the ring's time).
class MpiCollectives : public NativeCollectives {
 public:
  MpiCollectives(MPI_Comm world, Presence& presence) : presence_(presence) {
    MPI_Comm_dup(world, &small_);
    force_ring(true);
    MPI_Comm_dup(world, &large_);
    force_ring(false);
  }
  void sum(std::span<float> values, double timeout_s) override {
    all_reduce(values.data(), values.size(), sizeof(float), MPI_FLOAT, MPI_SUM, timeout_s);
  }
  void sum(std::span<std::int64_t> values, double timeout_s) override {
    all_reduce(values.data(), values.size(), sizeof(std::int64_t), MPI_INT64_T, MPI_SUM, timeout_s);
  }
  void max(std::span<std::int64_t> values, double timeout_s) override {
    all_reduce(values.data(), values.size(), sizeof(std::int64_t), MPI_INT64_T, MPI_MAX, timeout_s);
  }

 private:
  void all_reduce(void* values, std::size_t count, std::size_t width, MPI_Datatype type, MPI_Op op,
                  double timeout_s) {
    const Watchdog watchdog(timeout_s, presence_,
                            fmt::format("MPI_Allreduce ({} bytes)", count * width));
    MPI_Comm comm = count * width >= kLargeBytes ? large_ : small_;
    constexpr std::size_t kMostAtOnce = 1 << 28;  // counts are int
    for (std::size_t begin = 0; begin < count; begin += kMostAtOnce) {
      const int some = static_cast<int>(std::min(kMostAtOnce, count - begin));
      expect_success(MPI_Allreduce(MPI_IN_PLACE, static_cast<char*>(values) + begin * width, some,
                                   type, op, comm),
                     "MPI_Allreduce");
    }
  }

  // Communicators take the variable's value when they are made. Without it (another MPI) both are
  // alike.
  static void force_ring(bool on) {
    int provided = 0, index = 0, count = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return;
    if (MPI_T_cvar_get_index("coll_tuned_allreduce_algorithm", &index) == MPI_SUCCESS) {
      MPI_T_cvar_handle handle;
      if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
        const int algorithm = on ? 4 : 0;
        MPI_T_cvar_write(handle, &algorithm);
        MPI_T_cvar_handle_free(&handle);
      }
    }
    MPI_T_finalize();
  }

  Presence& presence_;
  MPI_Comm small_ = MPI_COMM_NULL;
  MPI_Comm large_ = MPI_COMM_NULL;
};

}  // namespace

std::unique_ptr<NativeCollectives> make_mpi_collectives(MPI_Comm world, Presence& presence) {
  return std::make_unique<MpiCollectives>(world, presence);
}

}  // namespace convoy
