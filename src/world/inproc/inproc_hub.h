// What the ranks of an in-process world share: a mailbox per rank, who is there, and who was seen
// where.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "world/inbox.h"
#include "world/inproc/inproc.h"
#include "world/patience.h"
#include "world/rank_killed.h"

namespace convoy {

class InprocHub {
 public:
  InprocHub(int size, const InprocOptions& options);

  int size() const { return static_cast<int>(mailboxes_.size()); }
  const std::vector<int>& ranks_of_host(int rank) const { return ranks_of_host_[host_of_[rank]]; }

  Ticket send(int from, int to, Tag tag, std::span<const std::byte> bytes);
  Ticket recv(int rank, int from, Tag tag, std::span<std::byte> buffer);
  std::optional<Completion> await(int rank, std::span<const Ticket> tickets, double timeout_s,
                                  bool heed_wake);
  void cancel(int rank, Ticket ticket);
  void wake(int rank);

  void publish(int rank, const Position& position);
  std::optional<Sighting> last_seen(int rank);

  void leave(int rank);                         // the rank has closed
  void lose(int rank, const std::string& why);  // the rank is dead: all others learn it

  // Why `rank` cannot count on another rank of its host any more; the rank that is gone and the
  // reason.
  std::optional<std::pair<int, std::string>> missing(int rank);
  // Ends the body of a killed rank, holds a paused one.
  void obey(int rank);

  void kill(int rank);
  void pause(int rank);
  void resume(int rank);
  void cut(int rank, int peer);

  // Shared memory and barrier of one host.
  struct Host {
    std::mutex mutex;
    std::condition_variable changed;
    int arrived = 0;
    std::uint64_t round = 0;
    std::vector<std::byte*> regions;  // by place among the host's ranks
  };
  Host& host(int rank) { return *hosts_[host_of_[rank]]; }
  std::size_t region_bytes() const { return region_bytes_; }
  void set_region_bytes(std::size_t bytes) { region_bytes_ = bytes; }  // before ranks begin

 private:
  using Clock = std::chrono::steady_clock;

  struct Silence {  // nothing has come from the peer since then
    int peer;
    Clock::time_point since;
  };

  struct Mailbox {
    explicit Mailbox(int size) : inbox(size) {}
    std::mutex mutex;  // guards all below
    std::condition_variable changed;
    Inbox inbox;
    bool woken = false;
    bool killed = false;
    bool paused = false;
    bool ended = false;
    std::string why;  // it ended; empty: by close
    std::vector<Silence> silences;
    std::vector<int> cut_off;  // peers
  };

  struct Seen {
    std::optional<Position> position;
    Clock::time_point when;
  };

  void hold_or_end(Mailbox& box, std::unique_lock<std::mutex>& lock);
  void hear_silence(int rank, Mailbox& box, std::unique_lock<std::mutex>& lock);
  void sever(int rank, int peer, const std::string& why);
  void silence(int rank, int peer);

  std::vector<std::unique_ptr<Mailbox>> mailboxes_;
  std::vector<int> host_of_;
  std::vector<std::vector<int>> ranks_of_host_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::chrono::duration<double> heartbeat_deadline_;
  std::size_t region_bytes_;
  std::mutex seen_mutex_;
  std::vector<Seen> seen_;
};

}  // namespace convoy
