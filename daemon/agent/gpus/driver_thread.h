// A thread that asks a driver, which may hang for good: at its end it has a few seconds, and is
// left behind where it does not come back.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace tierpilot::agent {

// What the thread and its owner share.
class DriverStop {
 public:
  bool stopped() const;
  // Until it is stopped, or waited so long, or was woken and `enough` holds.
  void wait(std::chrono::milliseconds most, const std::function<bool()>& enough = nullptr);
  void wake();
  // Does it unless the owner has gone, who waits for it meanwhile.
  void tell(const std::function<void()>& work);

 private:
  friend class DriverThread;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;      // with the mutex
  bool returned_ = false;  // with the mutex
};

class DriverThread {
 public:
  // `run` owns what it uses, and reaches what is its owner's within `tell` only.
  explicit DriverThread(std::function<void(DriverStop&)> run,
                        std::chrono::milliseconds patience = std::chrono::seconds(5));
  // Waits for it, at most so long after it was told to stop.
  ~DriverThread();
  DriverThread(const DriverThread&) = delete;

  // Several can be told before one is waited for.
  void stop();
  void wake() { stop_->wake(); }

 private:
  const std::chrono::milliseconds patience_;
  const std::shared_ptr<DriverStop> stop_ = std::make_shared<DriverStop>();
  std::chrono::steady_clock::time_point give_up_ = std::chrono::steady_clock::time_point::max();
  std::thread thread_;
};

}  // namespace tierpilot::agent
