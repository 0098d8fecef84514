#include "sync/ps/courier.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "world/runtime.h"

namespace convoy {
namespace {

constexpr int kUnderWay = 4;  // parcels to one rank

}  // namespace

Courier::~Courier() {
  for (const Ticket ticket : tickets_) transport_.cancel(ticket);
}

void Courier::open(Ticket ticket, Open operation) {
  tickets_.push_back(ticket);
  open_.push_back(std::move(operation));
}

void Courier::send(int to, Tag tag, std::span<const std::byte> bytes, Done done) {
  traffic_.out(bytes.size());
  open(transport_.send(to, tag, bytes), {.peer = to, .is_send = true, .done = std::move(done)});
}

void Courier::recv(int from, Tag tag, std::span<std::byte> buffer, Done done) {
  open(transport_.recv(from, tag, buffer),
       {.peer = from, .is_send = false, .done = std::move(done)});
}

void Courier::send_parcel(int to, Parcel parcel) {
  lanes_[to].waiting.push_back(std::move(parcel));
  start_parcels(to);
}

// Of equal priority, the oldest.
void Courier::start_parcels(int to) {
  Lane& lane = lanes_[to];
  while (lane.under_way < kUnderWay && !lane.waiting.empty()) {
    const auto next =
        std::max_element(lane.waiting.begin(), lane.waiting.end(),
                         [](const Parcel& a, const Parcel& b) { return a.priority < b.priority; });
    Parcel parcel = std::move(*next);
    lane.waiting.erase(next);
    ++lane.under_way;
    if (parcel.started) parcel.started();
    send(to, parcel.head_tag, parcel.head);
    send(to, parcel.body_tag, parcel.body, [this, to, done = std::move(parcel.done)](const auto&) {
      --lanes_[to].under_way;
      if (done) done();
      start_parcels(to);
    });
  }
}

void Courier::drop(int rank) {
  lanes_.erase(rank);
  for (std::size_t i = 0; i < tickets_.size();) {
    if (open_[i].peer != rank) {
      ++i;
      continue;
    }
    transport_.cancel(tickets_[i]);
    tickets_[i] = tickets_.back();
    open_[i] = std::move(open_.back());
    tickets_.pop_back();
    open_.pop_back();
  }
}

void Courier::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
  }
  transport_.wake();
}

void Courier::do_posted() {
  for (;;) {
    std::function<void()> work;
    {
      const std::lock_guard lock(mutex_);
      if (posted_.empty()) return;
      work = std::move(posted_.front());
      posted_.pop_front();
    }
    work();
  }
}

bool Courier::sending() const {
  return std::any_of(open_.begin(), open_.end(), [](const Open& open) { return open.is_send; });
}

void Courier::finish(const Completion& completion) {
  const auto found = std::find(tickets_.begin(), tickets_.end(), completion.ticket);
  CHECK(found != tickets_.end(), "a ticket that nobody waits for");
  const std::size_t place = std::size_t(found - tickets_.begin());
  Open operation = std::move(open_[place]);
  // In order: what was opened first is looked at first, so that nobody is kept waiting for ever.
  tickets_.erase(found);
  open_.erase(open_.begin() + std::ptrdiff_t(place));
  if (!operation.is_send) traffic_.in(completion.bytes);
  if (operation.done) operation.done(completion);
}

// A message that is longer than it may be fails its receive, again and again: whose is it?
int Courier::faulty_peer() {
  for (std::size_t i = 0; i < tickets_.size(); ++i) {
    try {
      if (const auto done = transport_.wait_any({&tickets_[i], 1}, 0)) {
        finish(*done);
        return -1;  // the fault shows again
      }
    } catch (const PeerLost&) {
      continue;
    } catch (const TransportError&) {
      return open_[i].peer;
    }
  }
  return -1;
}

void Courier::run() {
  for (;;) {
    do_posted();
    if (stopping_ && !sending()) return;
    std::optional<Completion> completion;
    int troubled = -1;
    const Trouble* handler = &lost_;
    std::string why;
    try {
      completion = transport_.wait_any(tickets_, kForever);
    } catch (const PeerLost& loss) {
      if (!lost_) throw;
      troubled = loss.rank();
      // Without the rank, which is told beside it.
      const std::string text = loss.what();
      why = text.substr(std::min(text.find(": ") + 2, text.size()));
    } catch (const TransportError& error) {
      if (!fault_) throw;
      troubled = faulty_peer();
      handler = &fault_;
      why = error.what();
    }
    if (completion) finish(*completion);
    if (troubled < 0) continue;
    drop(troubled);
    (*handler)(troubled, why);
  }
}

}  // namespace convoy
