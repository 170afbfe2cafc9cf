#include "daemon/agent/gpus/driver_thread.h"

#include "base/log.h"

namespace tierpilot::agent {

bool DriverStop::stopped() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

void DriverStop::wait(std::chrono::milliseconds most, const std::function<bool()>& enough) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [&] { return stop_ || (enough && enough()); });
}

void DriverStop::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void DriverStop::tell(const std::function<void()>& work) {
  const std::lock_guard lock(mutex_);
  if (!stop_) work();
}

DriverThread::DriverThread(std::function<void(DriverStop&)> run, std::chrono::milliseconds patience)
    : patience_(patience), thread_([stop = stop_, run = std::move(run)]() mutable {
        run(*stop);
        run = nullptr;
        const std::lock_guard lock(stop->mutex_);
        stop->returned_ = true;
        stop->changed_.notify_all();
      }) {}

DriverThread::~DriverThread() {
  stop();
  std::unique_lock lock(stop_->mutex_);
  if (stop_->changed_.wait_until(lock, give_up_, [&] { return stop_->returned_; })) {
    lock.unlock();
    thread_.join();
  } else {
    spdlog::warn("the GPUs' driver does not answer: the thread that asks it is left behind");
    thread_.detach();
  }
}

void DriverThread::stop() {
  const std::lock_guard lock(stop_->mutex_);
  if (!stop_->stop_) give_up_ = std::chrono::steady_clock::now() + patience_;
  stop_->stop_ = true;
  stop_->changed_.notify_all();
}

}  // namespace tierpilot::agent
