#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "world/mpi/backoff.h"
#include "world/mpi/mpi_collectives.h"
#include "world/mpi/mpi_session.h"
#include "world/mpi/mpi_world.h"
#include "world/native_collectives.h"
#include "world/thread_runtime.h"

namespace convoy {

namespace {

class MpiTransport : public Transport, private Presence {
 public:
  // Takes a communicator of its own from `comm`.
  MpiTransport(MPI_Comm comm, bool crowded) : crowded_(crowded) {
    MPI_Comm_dup(comm, &comm_);
    MPI_Comm_dup(comm, &status_comm_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    sightings_.resize(size_);
    listen();
    natives_ = make_mpi_collectives(comm, *this);
  }

  // Its communicators stay until MPI ends: freeing them is for all ranks at once.
  ~MpiTransport() override = default;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool has_ended_well() const { return is_closed_ && !has_stuck_send_; }

  Ticket send(int to, Tag tag, std::span<const std::byte> bytes) override {
    Operation& operation = open(to, tag, bytes.size());
    operation.is_send = true;
    expect_success(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to,
                             static_cast<int>(tag), comm_, &operation.request),
                   "MPI_Isend");
    return operation.ticket;
  }

  Ticket recv(int from, Tag tag, std::span<std::byte> buffer) override {
    Operation& operation = open(from, tag, buffer.size());
    operation.is_send = false;
    expect_success(MPI_Irecv(buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE,
                             from == kAnyRank ? MPI_ANY_SOURCE : from, static_cast<int>(tag), comm_,
                             &operation.request),
                   "MPI_Irecv");
    return operation.ticket;
  }

  // What was not received is dropped. MPI cannot take back a send: this waits for its receiver, for
  // a second. If that was in vain, the send stays with MPI, whatever becomes of its buffer, and the
  // job cannot end well: the process ends all of it when it ends.
  void cancel(Ticket ticket) override {
    Operation* operation = find(ticket);
    if (!operation) return;
    if (operation->failure.empty()) {
      if (!operation->is_send) MPI_Cancel(&operation->request);
      Backoff backoff(has_stuck_send_ ? 0 : kGiveUp_s, crowded_);
      for (int is_over = 0;;) {
        MPI_Test(&operation->request, &is_over, MPI_STATUS_IGNORE);
        if (is_over) break;
        if (backoff.is_over()) {
          has_stuck_send_ = true;
          return;
        }
        if (backoff.waited_s() > kTellEvery_s) keep_in_touch();
        backoff.pass(mutex_, woken_, [] { return false; });
      }
    }
    close_operation(*operation);
  }

  void wake() override {
    {
      std::lock_guard lock(mutex_);
      is_woken_ = true;
    }
    woken_.notify_one();
  }

  void publish(const Position& position) override { position_ = position; }

  std::optional<Sighting> last_seen(int rank) override {
    if (rank == rank_) return Sighting{position_, 0};
    keep_in_touch();  // who asks may be asked for, too
    if (!sightings_[rank].known) return std::nullopt;
    return Sighting{sightings_[rank].position, now_s() - sightings_[rank].heard_s};
  }

  // Returns when MPI has taken what was sent; the others go on for as long as they like.
  void close(double timeout_s) override {
    Backoff backoff(timeout_s, crowded_);
    for (Operation& operation : operations_) {
      while (operation.ticket != 0 && operation.is_send && operation.failure.empty()) {
        if (test(operation.ticket)) break;
        if (backoff.is_over())
          throw DeadlineExceeded(fmt::format("rank {}: rank {} did not take a message within {} s",
                                             rank_, operation.peer, timeout_s));
        backoff.pass(mutex_, woken_, [] { return false; });
      }
    }
    position_.sequence = kLeft;
    tell_position();
    is_closed_ = true;
  }

  NativeCollectives* native_collectives() override { return natives_.get(); }

 protected:
  std::optional<Completion> await(std::span<const Ticket> tickets, double timeout_s,
                                  Heed heed) override {
    Backoff backoff(timeout_s, crowded_);
    for (;;) {
      for (const Ticket ticket : tickets)
        if (std::optional<Completion> done = test(ticket)) return done;
      hear();
      if (backoff.waited_s() > kTellEvery_s) keep_in_touch();
      if (heed == Heed::wake && take_wake()) return std::nullopt;
      if (backoff.is_over()) return std::nullopt;
      backoff.pass(mutex_, woken_, [&] { return heed == Heed::wake && is_woken_; });
    }
  }

 private:
  struct Operation {
    Ticket ticket = 0;  // generation and place; 0 while free
    std::uint32_t generation = 0;
    bool is_send = false;
    int peer = 0;
    Tag tag = 0;
    std::size_t bytes = 0;
    std::string failure;  // why it cannot be done any more
    MPI_Request request = MPI_REQUEST_NULL;
  };
  struct Heard {
    bool known = false;
    Position position;
    double heard_s = 0;
    double left_s = std::numeric_limits<double>::infinity();
  };
  static constexpr std::uint64_t kLeft =
      ~std::uint64_t{0};  // as a sequence: the rank has ended its work
  static constexpr double kGiveUp_s = 1;
  static constexpr double kOvertaken_s = 0.05;

  Operation& open(int peer, Tag tag, std::size_t bytes) {
    if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      throw TransportError(fmt::format("a message of {} bytes: MPI takes at most 2 GiB", bytes));
    if (free_.empty()) {
      operations_.emplace_back();
      free_.push_back(static_cast<std::uint32_t>(operations_.size() - 1));
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    Operation& operation = operations_[place];
    operation.ticket = (static_cast<Ticket>(++operation.generation) << 32) | place;
    operation.peer = peer;
    operation.tag = tag;
    operation.bytes = bytes;
    operation.failure.clear();
    return operation;
  }

  // Null for a ticket that is used up.
  Operation* find(Ticket ticket) {
    const auto place = static_cast<std::uint32_t>(ticket);
    if (place >= operations_.size() || operations_[place].ticket != ticket) return nullptr;
    return &operations_[place];
  }

  void close_operation(Operation& operation) {
    free_.push_back(static_cast<std::uint32_t>(operation.ticket));
    operation.ticket = 0;
  }

  std::optional<Completion> test(Ticket ticket) {
    Operation* operation = find(ticket);
    CHECK(operation, "a ticket that is used up: {}", ticket);
    if (!operation->failure.empty()) throw TransportError(operation->failure);
    int flag = 0;
    MPI_Status status;
    const int code = MPI_Test(&operation->request, &flag, &status);
    if (code != MPI_SUCCESS) fail(*operation, code, status.MPI_SOURCE);
    if (!flag) {
      if (!operation->is_send && operation->peer != kAnyRank && has_left(operation->peer))
        throw PeerLost(operation->peer, "it has ended its work");
      return std::nullopt;
    }
    Completion done{ticket, operation->peer, operation->bytes};
    if (!operation->is_send) {
      int count = 0;
      MPI_Get_count(&status, MPI_BYTE, &count);
      done.rank = status.MPI_SOURCE;
      done.bytes = static_cast<std::size_t>(count);
    }
    close_operation(*operation);
    return done;
  }

  // The operation has failed for good: whoever asks for it again hears the same until it is given
  // up.
  [[noreturn]] void fail(Operation& operation, int code, int from) {
    int kind = 0;
    MPI_Error_class(code, &kind);
    operation.failure = kind == MPI_ERR_TRUNCATE
                            ? fmt::format(
                                  "rank {}: a message from rank {} under tag {} is longer than its "
                                  "buffer of {} bytes",
                                  rank_, from, operation.tag, operation.bytes)
                            : fmt::format("rank {}: MPI could not {} (error class {})", rank_,
                                          operation.is_send ? "send" : "receive", kind);
    throw TransportError(operation.failure);
  }

  bool take_wake() {
    std::lock_guard lock(mutex_);
    return std::exchange(is_woken_, false);
  }

  void listen() {
    MPI_Irecv(&incoming_, sizeof incoming_, MPI_BYTE, MPI_ANY_SOURCE, 0, status_comm_, &listening_);
  }

  void hear() {
    for (int flag = 1; flag;) {
      MPI_Status status;
      MPI_Test(&listening_, &flag, &status);
      if (!flag) break;
      Heard& heard = sightings_[status.MPI_SOURCE];
      if (incoming_.sequence == kLeft)
        heard.left_s = now_s();
      else
        heard = {.known = true, .position = incoming_, .heard_s = now_s()};
      listen();
    }
  }

  // What it sent before may come after this, in another communicator: not at once.
  bool has_left(int peer) const { return now_s() > sightings_[peer].left_s + kOvertaken_s; }

  void keep_in_touch() override {
    hear();
    if (now_s() > told_s_ + kTellEvery_s) tell_position();
  }

  std::vector<int> absent(double silent_s) override {
    std::vector<int> behind, silent;
    for (int peer = 0; peer < size_; ++peer) {
      const Heard& heard = sightings_[peer];
      if (peer == rank_ || (heard.known && heard.position.sequence >= position_.sequence)) continue;
      behind.push_back(peer);
      if (!heard.known || now_s() > heard.heard_s + silent_s) silent.push_back(peer);
    }
    return silent.empty() ? behind : silent;
  }

  // Small messages, which MPI takes over at once.
  void tell_position() {
    told_s_ = now_s();
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      telling_.push_back({position_, MPI_REQUEST_NULL});
      MPI_Isend(&telling_.back().position, sizeof(Position), MPI_BYTE, peer, 0, status_comm_,
                &telling_.back().request);
    }
    while (!telling_.empty()) {
      int flag = 0;
      MPI_Test(&telling_.front().request, &flag, MPI_STATUS_IGNORE);
      if (!flag) break;
      telling_.pop_front();
    }
  }

  struct Telling {
    Position position;
    MPI_Request request;
  };

  bool crowded_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Comm status_comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  bool is_closed_ = false;
  bool has_stuck_send_ = false;
  std::deque<Operation> operations_;  // stays in place: MPI holds on to the requests
  std::vector<std::uint32_t> free_;
  Position position_;
  Position incoming_;
  MPI_Request listening_ = MPI_REQUEST_NULL;
  std::vector<Heard> sightings_;
  std::deque<Telling> telling_;
  double told_s_ = 0;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_woken_ = false;
  std::unique_ptr<NativeCollectives> natives_;
};

class MpiMembership : public Membership {
 public:
  explicit MpiMembership(MPI_Comm comm) : transport_(comm, MpiSession::get().crowded()) {}
  ~MpiMembership() override {
    if (!transport_.has_ended_well()) MpiSession::has_failed = true;
  }
  World world() override { return {runtime_, transport_}; }

 private:
  ThreadRuntime runtime_;
  MpiTransport transport_;
};

}  // namespace

bool started_by_mpi() { return std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("PMIX_RANK"); }

std::unique_ptr<Membership> join_mpi() {
  return std::make_unique<MpiMembership>(MpiSession::get().world());
}

int mpi_size() {
  int size = 0;
  MPI_Comm_size(MpiSession::get().world(), &size);
  return size;
}

void run_mpi(int size, const RankBody& body) {
  const MpiSession& session = MpiSession::get();
  int rank = 0;
  MPI_Comm_rank(session.world(), &rank);
  MPI_Comm some;
  MPI_Comm_split(session.world(), rank < size ? 0 : MPI_UNDEFINED, rank, &some);
  std::exception_ptr failure;
  if (some != MPI_COMM_NULL) {
    try {
      MpiMembership membership(some);
      body(membership.world());
    } catch (...) {
      failure = std::current_exception();
    }
    MpiSession::has_failed = false;
    MPI_Comm_free(&some);
  }
  MPI_Barrier(session.world());
  if (failure) std::rethrow_exception(failure);
}

}  // namespace convoy
