#include "daemon/agent/tasks/tree_sizes.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <system_error>

namespace tierpilot::agent {
namespace fs = std::filesystem;
namespace {

// Nothing: `goes_on` said so.
std::optional<uint64_t> tree_bytes(const fs::path& folder, const std::function<bool()>& goes_on) {
  uint64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    if (!goes_on()) return std::nullopt;
    struct stat st;
    if (::lstat(it->path().c_str(), &st) == 0) bytes += static_cast<uint64_t>(st.st_blocks) * 512;
  }
  return bytes;
}

}  // namespace

std::optional<uint64_t> TreeSizes::of(const fs::path& folder, size_t& files_at_once) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = bytes_.find(folder); known != bytes_.end()) {
      if (!known->second) chores_.ask();  // there may have been no thread
      return known->second;
    }
  }
  const auto bytes = tree_bytes(folder, [&] { return files_at_once > 0 && files_at_once-- > 0; });
  const std::lock_guard lock(mutex_);
  bytes_[folder] = bytes;
  if (!bytes) chores_.ask();
  return bytes;
}

void TreeSizes::forget(const fs::path& folder) {
  const std::lock_guard lock(mutex_);
  bytes_.erase(folder);
}

bool TreeSizes::is_measuring() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(bytes_.begin(), bytes_.end(), [](const auto& each) { return !each.second; });
}

void TreeSizes::work(const Chores::Ending& ending) {
  while (!ending) {
    std::unique_lock lock(mutex_);
    const auto next =
        std::find_if(bytes_.begin(), bytes_.end(), [](const auto& each) { return !each.second; });
    if (next == bytes_.end()) return;
    const auto folder = next->first;
    lock.unlock();
    const auto bytes = tree_bytes(folder, [&] { return !ending; });
    lock.lock();
    if (const auto asked = bytes_.find(folder); bytes && asked != bytes_.end())
      asked->second = bytes;
  }
}

}  // namespace tierpilot::agent
