#include "world/inproc/inproc_hub.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace convoy {

InprocHub::InprocHub(int size, const InprocOptions& options)
    : host_of_(options.host_of.empty() ? std::vector<int>(size, 0) : options.host_of),
      heartbeat_deadline_(options.heartbeat_deadline_s),
      region_bytes_(options.region_bytes),
      seen_(size) {
  CHECK(static_cast<int>(host_of_.size()) == size, "{} places for {} ranks", host_of_.size(), size);
  const int hosts = 1 + *std::max_element(host_of_.begin(), host_of_.end());
  ranks_of_host_.resize(hosts);
  for (int rank = 0; rank < size; ++rank) {
    mailboxes_.push_back(std::make_unique<Mailbox>(size));
    ranks_of_host_[host_of_[rank]].push_back(rank);
  }
  for (int host = 0; host < hosts; ++host) {
    hosts_.push_back(std::make_unique<Host>());
    hosts_.back()->regions.resize(ranks_of_host_[host].size());
  }
}

// No two mailboxes are ever locked at once, so that ranks cannot wait for each other in a circle.
Ticket InprocHub::send(int from, int to, Tag tag, std::span<const std::byte> bytes) {
  bool cut_off = false;
  Ticket ticket = 0;
  {
    Mailbox& own = *mailboxes_[from];
    std::unique_lock lock(own.mutex);
    hold_or_end(own, lock);
    ticket = own.inbox.matcher().open_send(to, bytes.size());
    if (own.inbox.matcher().gone(to)) return ticket;
    own.inbox.matcher().finish(ticket);
    cut_off = std::find(own.cut_off.begin(), own.cut_off.end(), to) != own.cut_off.end();
  }
  Mailbox& box = *mailboxes_[to];
  const std::lock_guard lock(box.mutex);
  if (cut_off || box.ended || box.inbox.matcher().gone(from)) return ticket;
  const Inbox::Arrival arrival = box.inbox.begin(from, tag, bytes.size());
  std::byte* const target = box.inbox.bytes_of(arrival);
  if (target != nullptr && !bytes.empty()) std::memcpy(target, bytes.data(), bytes.size());
  box.inbox.finish(arrival);
  box.changed.notify_one();
  return ticket;
}

Ticket InprocHub::recv(int rank, int from, Tag tag, std::span<std::byte> buffer) {
  Mailbox& box = *mailboxes_[rank];
  std::unique_lock lock(box.mutex);
  hold_or_end(box, lock);
  return box.inbox.recv(from, tag, buffer);
}

std::optional<Completion> InprocHub::await(int rank, std::span<const Ticket> tickets,
                                           double timeout_s, bool heed_wake) {
  const Patience patience(timeout_s);
  Mailbox& box = *mailboxes_[rank];
  std::unique_lock lock(box.mutex);
  for (;;) {
    hold_or_end(box, lock);
    hear_silence(rank, box, lock);
    if (const auto done = box.inbox.matcher().take_done(tickets)) return done;
    if (heed_wake && std::exchange(box.woken, false)) return std::nullopt;
    if (patience.over()) return std::nullopt;
    if (box.silences.empty()) {
      patience.wait(box.changed, lock);
    } else {
      const std::chrono::duration<double> step(std::min(patience.left_s(), 0.01));
      box.changed.wait_for(lock, step);
    }
  }
}

void InprocHub::cancel(int rank, Ticket ticket) {
  const std::lock_guard lock(mailboxes_[rank]->mutex);
  mailboxes_[rank]->inbox.matcher().give_up(ticket);
}

void InprocHub::wake(int rank) {
  Mailbox& box = *mailboxes_[rank];
  const std::lock_guard lock(box.mutex);
  box.woken = true;
  box.changed.notify_one();
}

void InprocHub::publish(int rank, const Position& position) {
  const std::lock_guard lock(seen_mutex_);
  seen_[rank] = {position, Clock::now()};
}

std::optional<Sighting> InprocHub::last_seen(int rank) {
  const std::lock_guard lock(seen_mutex_);
  const Seen& seen = seen_[rank];
  if (!seen.position) return std::nullopt;
  return Sighting{*seen.position, std::chrono::duration<double>(Clock::now() - seen.when).count()};
}

void InprocHub::leave(int rank) { lose(rank, ""); }

void InprocHub::lose(int rank, const std::string& why) {
  {
    const std::lock_guard lock(mailboxes_[rank]->mutex);
    if (std::exchange(mailboxes_[rank]->ended, true)) return;
    mailboxes_[rank]->why = why;
  }
  for (int other = 0; other < size(); ++other) {
    if (other == rank) continue;
    Mailbox& box = *mailboxes_[other];
    const std::lock_guard lock(box.mutex);
    if (why.empty())
      box.inbox.matcher().leave(rank);
    else
      box.inbox.matcher().lose(rank, why);
    box.changed.notify_one();
  }
  Host& shared = host(rank);
  const std::lock_guard lock(shared.mutex);
  shared.changed.notify_all();
}

std::optional<std::pair<int, std::string>> InprocHub::missing(int rank) {
  for (const int other : ranks_of_host(rank)) {
    Mailbox& box = *mailboxes_[other];
    const std::lock_guard lock(box.mutex);
    if (other != rank && box.ended)
      return std::pair{other, box.why.empty() ? std::string("it has ended its work") : box.why};
  }
  return std::nullopt;
}

void InprocHub::obey(int rank) {
  Mailbox& box = *mailboxes_[rank];
  std::unique_lock lock(box.mutex);
  hold_or_end(box, lock);
}

void InprocHub::hold_or_end(Mailbox& box, std::unique_lock<std::mutex>& lock) {
  while (box.paused && !box.killed) box.changed.wait(lock);
  if (box.killed) throw RankKilled{};
}

// Peers that were silent for too long are lost, to both sides.
void InprocHub::hear_silence(int rank, Mailbox& box, std::unique_lock<std::mutex>& lock) {
  if (box.silences.empty()) return;
  const Clock::time_point now = Clock::now();
  std::vector<int> late;
  std::erase_if(box.silences, [&](const Silence& silence) {
    if (now - silence.since < heartbeat_deadline_) return false;
    late.push_back(silence.peer);
    return true;
  });
  if (late.empty()) return;
  const std::string why = fmt::format("silent for more than {} s", heartbeat_deadline_.count());
  for (const int peer : late) box.inbox.matcher().lose(peer, why);
  lock.unlock();
  for (const int peer : late) sever(peer, rank, "it gave up waiting for a sign of life");
  lock.lock();
}

void InprocHub::sever(int rank, int peer, const std::string& why) {
  Mailbox& box = *mailboxes_[rank];
  const std::lock_guard lock(box.mutex);
  box.inbox.matcher().lose(peer, why);
  box.changed.notify_all();
}

void InprocHub::silence(int rank, int peer) {
  Mailbox& box = *mailboxes_[rank];
  const std::lock_guard lock(box.mutex);
  box.silences.push_back({peer, Clock::now()});
  box.changed.notify_all();
}

void InprocHub::kill(int rank) {
  {
    Mailbox& box = *mailboxes_[rank];
    const std::lock_guard lock(box.mutex);
    box.killed = true;
    box.changed.notify_all();
  }
  lose(rank, "it was killed");
}

void InprocHub::pause(int rank) {
  {
    const std::lock_guard lock(mailboxes_[rank]->mutex);
    mailboxes_[rank]->paused = true;
    mailboxes_[rank]->changed.notify_all();
  }
  for (int other = 0; other < size(); ++other)
    if (other != rank) silence(other, rank);
}

void InprocHub::resume(int rank) {
  for (int other = 0; other < size(); ++other) {
    const std::lock_guard lock(mailboxes_[other]->mutex);
    std::erase_if(mailboxes_[other]->silences, [&](const Silence& s) { return s.peer == rank; });
  }
  const std::lock_guard lock(mailboxes_[rank]->mutex);
  mailboxes_[rank]->paused = false;
  mailboxes_[rank]->changed.notify_all();
}

void InprocHub::cut(int rank, int peer) {
  for (const auto& [one, other] : {std::pair{rank, peer}, std::pair{peer, rank}}) {
    {
      const std::lock_guard lock(mailboxes_[one]->mutex);
      mailboxes_[one]->cut_off.push_back(other);
    }
    silence(one, other);
  }
}

}  // namespace convoy
