#include "swap/lane.h"

#include <pthread.h>
#include <signal.h>

namespace tierpilot::swap {

Lane::Lane(const std::string& name, size_t threads, ComputeDevice& device, Work work)
    : work_(std::move(work)) {
  // The host program's signals are not for these threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (size_t i = 0; i < threads; ++i)
    threads_.emplace_back([this, name, &device] { run(name, device); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Lane::~Lane() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Lane::push(uint32_t item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(item);
  }
  wake_.notify_one();
}

void Lane::run(const std::string& name, ComputeDevice& device) {
  pthread_setname_np(pthread_self(), name.c_str());
  const auto copier = device.copier();
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ending_ || !items_.empty(); });
    if (ending_) return;
    const auto item = items_.front();
    items_.pop_front();
    lock.unlock();
    work_(item, *copier);
    lock.lock();
  }
}

}  // namespace tierpilot::swap
