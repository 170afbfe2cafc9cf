// Which requests are being decided. Thread-safe; its lock is only ever held for a look at the
// table, and never by the low-priority training thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace tierpilot {

class OpenRequests {
 public:
  void add(uint64_t id) {
    const std::lock_guard lock(mutex_);
    open_.insert(id);
  }
  bool contains(uint64_t id) const {
    const std::lock_guard lock(mutex_);
    return open_.count(id) != 0;
  }
  // False: somebody else has closed it.
  bool close(uint64_t id) {
    const std::lock_guard lock(mutex_);
    return open_.erase(id) != 0;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<uint64_t> open_;
};

}  // namespace tierpilot
