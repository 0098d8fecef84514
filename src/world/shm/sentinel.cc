#include "world/shm/sentinel.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>

namespace convoy::shm {

Sentinel::Sentinel(Segment& segment, int index) : segment_(segment), index_(index) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the other threads
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  stage_.wait(Stage::starting);
}

Sentinel::~Sentinel() {
  stage_ = Stage::stopping;
  stage_.notify_all();
  thread_.join();
}

void Sentinel::run() {
  robust_list_head* usual = nullptr;  // the C library's
  std::size_t usual_bytes = 0;
  syscall(SYS_get_robust_list, 0, &usual, &usual_bytes);

  list_.list.next = &list_.list;
  list_.futex_offset =
      static_cast<long>(offsetof(Pulse, word)) - static_cast<long>(offsetof(Pulse, link));
  const std::uint32_t beating = static_cast<std::uint32_t>(syscall(SYS_gettid)) | FUTEX_WAITERS;
  for (int watcher = 0; watcher < segment_.ranks(); ++watcher) {
    Pulse& pulse = segment_.pulse(index_, watcher);
    pulse.link.next = list_.list.next;
    list_.list.next = &pulse.link;
  }
  syscall(SYS_set_robust_list, &list_, sizeof list_);
  for (int watcher = 0; watcher < segment_.ranks(); ++watcher)
    segment_.pulse(index_, watcher).word.store(beating);

  stage_ = Stage::watching;
  stage_.notify_all();
  stage_.wait(Stage::watching);

  syscall(SYS_set_robust_list, usual, usual_bytes);
  for (int watcher = 0; watcher < segment_.ranks(); ++watcher)
    segment_.pulse(index_, watcher).word.store(0);
}

}  // namespace convoy::shm
