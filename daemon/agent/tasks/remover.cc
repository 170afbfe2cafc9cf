#include "daemon/agent/tasks/remover.h"

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "base/log.h"
#include "daemon/exec/options.h"

namespace tierpilot::agent {
namespace fs = std::filesystem;

Remover::~Remover() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  asked_.notify_one();
  thread_.join();
}

void Remover::remove(const fs::path& folder) {
  const auto aside =
      folder.parent_path() / (std::string(kRemovedPrefix) + folder.filename().native());
  // Where one of that name is being removed yet, this one goes under its own.
  const bool renamed = ::rename(folder.c_str(), aside.c_str()) == 0;
  if (!renamed && errno == ENOENT) return;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(renamed ? aside : folder);
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  }
  asked_.notify_one();
}

void Remover::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    asked_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const auto folder = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    remove_now(folder);
    lock.lock();
  }
}

// Looks up between the entries: the daemon may be ending.
void Remover::remove_now(const fs::path& folder) {
  std::error_code error, ignored;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && !ending_;
       entry.increment(error))
    fs::remove_all(entry->path(), ignored);
  if (ending_) return;
  fs::remove_all(folder, error);
  if (error) spdlog::warn("folder {} cannot be removed: {}", folder.native(), error.message());
}

}  // namespace tierpilot::agent
