#include "world/thread_runtime.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace convoy {
namespace {

TEST(ThreadRuntime, AnEventThatWasSetIsNotLost) {
  ThreadRuntime runtime;
  const auto event = runtime.make_event();
  EXPECT_FALSE(event->wait(0));
  event->set();
  event->set();
  EXPECT_TRUE(event->wait(0));
  EXPECT_FALSE(event->wait(0.001));
}

TEST(ThreadRuntime, TasksWakeEachOther) {
  ThreadRuntime runtime;
  const auto ping = runtime.make_event();
  const auto pong = runtime.make_event();
  int count = 0;
  const auto task = runtime.spawn("a name that is longer than Linux allows", [&] {
    for (int round = 0; round < 100; ++round) {
      ping->wait(kForever);
      ++count;
      pong->set();
    }
  });
  for (int round = 0; round < 100; ++round) {
    ping->set();
    EXPECT_TRUE(pong->wait(kForever));
    EXPECT_EQ(count, round + 1);
  }
  task->join();
}

TEST(ThreadRuntime, JoinThrowsWhatTheTaskThrewOnce) {
  ThreadRuntime runtime;
  const auto task = runtime.spawn("fails", [] { throw std::runtime_error("broken"); });
  EXPECT_THROW(task->join(), std::runtime_error);
  EXPECT_NO_THROW(task->join());
}

TEST(ThreadRuntime, TimePasses) {
  ThreadRuntime runtime;
  const double before_s = runtime.now_s();
  runtime.sleep_s(0.002);
  runtime.compute_s(0.001);
  EXPECT_GE(runtime.now_s(), before_s + 0.003);
}

}  // namespace
}  // namespace convoy
