// Removes folders with what is in them on a thread of its own: of millions of files that takes
// longer than a lease lasts.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>

namespace tierpilot::agent {

class Remover {
 public:
  Remover() = default;
  Remover(const Remover&) = delete;
  Remover& operator=(const Remover&) = delete;
  // Leaves what it has not come to.
  ~Remover();

  // The folder has another name at once (kRemovedPrefix), so that its own is free, and is removed
  // then. The first starts the thread.
  void remove(const std::filesystem::path& folder);

 private:
  void work();
  void remove_now(const std::filesystem::path& folder);

  std::mutex mutex_;
  std::condition_variable asked_;
  std::deque<std::filesystem::path> waiting_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace tierpilot::agent
