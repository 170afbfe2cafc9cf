// Work on files that may take longer than a lease lasts, on a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tierpilot::agent {

class Chores {
 public:
  using Ending = std::atomic<bool>;
  // Does all that there is to do, and looks up now and then whether the daemon is ending.
  using Work = std::function<void(const Ending&)>;

  explicit Chores(Work work) : work_(std::move(work)) {}
  Chores(const Chores&) = delete;
  Chores& operator=(const Chores&) = delete;
  // Leaves what the thread has not come to.
  ~Chores();

  // There is something to do. The first starts the thread; where none is to be had, the next one
  // tries again.
  void ask() noexcept;

 private:
  void run();

  const Work work_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool asked_ = false;  // with the mutex
  Ending ending_ = false;
  std::thread thread_;
};

}  // namespace tierpilot::agent
