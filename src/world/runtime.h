// Time and tasks, as every distributed part sees them. A strategy asks its Runtime for the time,
// for a pause, for another task; it never calls the clock or std::thread itself. So the same code
// runs on threads and the real clock, and on fibers and a virtual one.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>

namespace convoy {

inline constexpr double kForever = std::numeric_limits<double>::infinity();

// A flag by which one task wakes another. Set before wait is not lost.
class Event {
 public:
  virtual ~Event() = default;
  virtual void set() = 0;  // from any task
  virtual bool wait(
      double timeout_s) = 0;  // true: it was set, and is clear again; false: the time is over
};

// A task that was started. The destructor waits for its end.
class Task {
 public:
  virtual ~Task() = default;
  virtual void join() = 0;  // waits for the end; throws what the task threw, once
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual double now_s() const = 0;  // since an arbitrary start; never goes back
  virtual void sleep_s(double seconds) = 0;
  // Lets the time of a computation pass that nobody carries out. The simulated world scales it by
  // the rank's speed.
  virtual void compute_s(double seconds) = 0;
  virtual std::unique_ptr<Task> spawn(std::string name, std::function<void()> body) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
};

}  // namespace convoy
