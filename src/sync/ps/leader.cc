#include "sync/ps/leader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "sync/ps/message.h"

namespace convoy {

Leader::Leader(Courier& courier, const ServerJob& job)
    : courier_(courier),
      workers_(job.workers),
      buffers_(job.buffers),
      coordinator_(job),
      asks_(std::size_t(job.workers)),
      there_(std::size_t(job.workers), 1),
      serves_(std::size_t(job.layout.servers), 1) {}

void Leader::start() {
  for (int worker = 0; worker < workers_; ++worker) expect_ask(worker);
}

void Leader::expect_ask(int worker) {
  Ask& ask = asks_[std::size_t(worker)];
  courier_.recv(worker, tag_of(Stream::ask), writable_bytes_of(ask),
                [this, worker](const Completion&) {
                  const Ask came = asks_[std::size_t(worker)];
                  if (came.kind == Ask::bye) {
                    there_[std::size_t(worker)] = 0;
                    return see_who_is_there();
                  }
                  expect_ask(worker);
                  take_ask(worker, came);
                });
}

void Leader::take_ask(int worker, const Ask& ask) {
  if (ask.kind != Ask::arrive || buffers_ == 0) {
    coordinator_.ask(worker, ask);
    return tell();
  }
  const auto buffers = std::make_shared<std::vector<float>>(buffers_);
  courier_.recv(worker, tag_of(Stream::buffers), std::as_writable_bytes(std::span(*buffers)),
                [this, worker, ask, buffers](const Completion&) {
                  coordinator_.ask(worker, ask, *buffers);
                  tell();
                });
}

void Leader::tell() {
  for (const auto& [worker, answer] : coordinator_.take_answers()) {
    if (!there_[std::size_t(worker)]) continue;
    const auto kept = std::make_shared<Answer>(answer);
    courier_.send(worker, tag_of(Stream::answer), bytes_of(*kept), [kept](const Completion&) {});
    if (!answer.buffers || buffers_ == 0) continue;
    const auto merged = std::make_shared<std::vector<float>>(coordinator_.merged().begin(),
                                                             coordinator_.merged().end());
    courier_.send(worker, tag_of(Stream::buffers), std::as_bytes(std::span(*merged)),
                  [merged](const Completion&) {});
  }
  for (const Order& order : coordinator_.take_orders()) {
    const auto kept = std::make_shared<Order>(order);
    for (std::size_t server = 0; server < serves_.size(); ++server)
      if (serves_[server])
        courier_.send(workers_ + int(server), tag_of(Stream::order), bytes_of(*kept),
                      [kept](const Completion&) {});
  }
}

void Leader::lose_worker(int worker, const std::string& why) {
  if (!std::exchange(there_[std::size_t(worker)], 0)) return;
  coordinator_.lost(worker, why);
  tell();
  see_who_is_there();
}

void Leader::await_all_gone(std::function<void()> gone) {
  gone_ = std::move(gone);
  see_who_is_there();
}

void Leader::see_who_is_there() {
  if (gone_ && std::none_of(there_.begin() + 1, there_.end(), [](char there) { return there; }))
    std::exchange(gone_, {})();
}

}  // namespace convoy
