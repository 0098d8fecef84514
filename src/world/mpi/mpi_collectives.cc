#include "world/mpi/mpi_collectives.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

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

// Who has come to an operation that takes long. One thread at a time uses it.
class RollCall {
 public:
  explicit RollCall(MPI_Comm world) {
    MPI_Comm_dup(world, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    int size = 0;
    MPI_Comm_size(comm_, &size);
    present_in_.resize(static_cast<std::size_t>(size));
  }

  // Tells all others that this rank is in the operation of this number.
  void answer(std::uint64_t operation) {
    hear();
    for (int peer = 0; peer < std::ssize(present_in_); ++peer) {
      if (peer == rank_) continue;
      Answer& answer = answers_.emplace_back(Answer{operation, MPI_REQUEST_NULL});
      MPI_Isend(&answer.operation, 1, MPI_UINT64_T, peer, 0, comm_, &answer.request);
    }
    for (int taken = 1; taken && !answers_.empty();) {
      MPI_Test(&answers_.front().request, &taken, MPI_STATUS_IGNORE);
      if (taken) answers_.pop_front();
    }
  }

  // The ranks of which no such answer has come.
  std::vector<int> absent(std::uint64_t operation) {
    hear();
    std::vector<int> ranks;
    for (int peer = 0; peer < std::ssize(present_in_); ++peer)
      if (peer != rank_ && present_in_[static_cast<std::size_t>(peer)] < operation)
        ranks.push_back(peer);
    return ranks;
  }

 private:
  struct Answer {
    std::uint64_t operation;
    MPI_Request request;
  };

  void hear() {
    for (;;) {
      int is_there = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_, &is_there, &status);
      if (!is_there) return;
      MPI_Recv(&present_in_[static_cast<std::size_t>(status.MPI_SOURCE)], 1, MPI_UINT64_T,
               status.MPI_SOURCE, 0, comm_, MPI_STATUS_IGNORE);
    }
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  std::vector<std::uint64_t> present_in_;  // by rank, the last operation that it was heard from in
  std::deque<Answer> answers_;             // stay in place: MPI holds on to them
};

// Ends the job, with a reason, if it is not called off in time: MPI's blocking calls know no
// deadline. At half of the time it answers the roll call, so that at its end those are known who
// did not come.
class Watchdog {
 public:
  struct Watched {
    RollCall& roll_call;
    std::uint64_t number;
    std::string text;
  };

  Watchdog(double timeout_s, Watched watched)
      : thread_([this, timeout_s, watched = std::move(watched)] { watch(timeout_s, watched); }) {}
  ~Watchdog() {
    {
      std::lock_guard lock(mutex_);
      is_off_ = true;
    }
    called_off_.notify_one();
    thread_.join();
  }

 private:
  void watch(double timeout_s, const Watched& watched) {
    std::unique_lock lock(mutex_);
    const std::chrono::duration<double> half(std::min(timeout_s, 1e8) / 2);
    const auto is_off = [this] { return is_off_; };
    if (called_off_.wait_for(lock, half, is_off)) return;
    watched.roll_call.answer(watched.number);
    if (called_off_.wait_for(lock, half, is_off)) return;
    const std::vector<int> absent = watched.roll_call.absent(watched.number);
    const std::string why = absent.empty()
                                ? "every rank came, and yet it did not end"
                                : fmt::format("rank{} {} never came", absent.size() > 1 ? "s" : "",
                                              fmt::join(absent, ", "));
    tell(stderr, fmt::format("convoy: {}: {} within {} s\n", watched.text, why, timeout_s));
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

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
  explicit MpiCollectives(MPI_Comm world) : roll_call_(world) {
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
    const Watchdog watchdog(timeout_s, {roll_call_, ++operations_,
                                        fmt::format("MPI_Allreduce ({} bytes)", count * width)});
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

  RollCall roll_call_;
  std::uint64_t operations_ = 0;
  MPI_Comm small_ = MPI_COMM_NULL;
  MPI_Comm large_ = MPI_COMM_NULL;
};

}  // namespace

std::unique_ptr<NativeCollectives> make_mpi_collectives(MPI_Comm world) {
  return std::make_unique<MpiCollectives>(world);
}

}  // namespace convoy
