// Callbacks on their way out of the pool: gathered under any lock, posted under none, in order.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace tierpilot {

// Runs a function on the owner's thread. Called from several threads, never two at once.
using Post = std::function<void(std::function<void()>)>;

class Outbox {
 public:
  explicit Outbox(Post post) : post_(std::move(post)) {}

  void add(std::function<void()> callback) {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(callback));
  }

  // Must be called without locks. If `post` runs callbacks inline and they come back here, the
  // outer flush goes on with what they added.
  void flush() {
    std::unique_lock lock(mutex_);
    if (flushing_) return;
    flushing_ = true;
    while (!waiting_.empty()) {
      auto batch = std::exchange(waiting_, {});
      lock.unlock();
      for (auto& callback : batch) post_(std::move(callback));
      lock.lock();
    }
    flushing_ = false;
  }

 private:
  Post post_;
  std::mutex mutex_;
  std::vector<std::function<void()>> waiting_;
  bool flushing_ = false;
};

}  // namespace tierpilot
