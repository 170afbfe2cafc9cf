#include "swap/lane.h"

#include <pthread.h>
#include <signal.h>

namespace tierpilot::swap {
namespace {

// For this thread, and those that it starts.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Lane::Lane(const std::string& name, size_t threads, ComputeDevice& device, Work work)
    : work_(std::move(work)) {
  const NoSignals none;  // the host program's are not for these threads
  try {
    for (size_t i = 0; i < threads; ++i)
      threads_.emplace_back([this, name, &device] { run(name, device); });
    std::unique_lock lock(mutex_);
    begun_.wait(lock, [&] { return ready_ == threads || failure_; });
    if (failure_) std::rethrow_exception(failure_);
  } catch (...) {
    end();
    throw;
  }
}

Lane::~Lane() {
  end();
}

void Lane::end() {
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

// A device's copier is made by the thread that uses it; there may be no memory for it.
std::unique_ptr<Copier> Lane::begin(ComputeDevice& device) {
  std::unique_ptr<Copier> copier;
  std::exception_ptr failure;
  try {
    copier = device.copier();
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  ++ready_;
  if (failure) failure_ = failure;
  begun_.notify_one();
  return copier;
}

void Lane::run(const std::string& name, ComputeDevice& device) {
  pthread_setname_np(pthread_self(), name.c_str());
  const auto copier = begin(device);
  if (!copier) return;
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
