#include "daemon/agent/tasks/remover.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/log.h"
#include "daemon/exec/options.h"

namespace tierpilot::agent {
namespace fs = std::filesystem;
namespace {

constexpr int kMostOfAName = 8;  // that are being removed at a time

// Looks up between the files: the daemon may be ending.
void remove_now(const fs::path& folder, const Chores::Ending& ending) {
  std::error_code error, ignored;
  for (fs::recursive_directory_iterator entry(folder, error), end;
       !error && entry != end && !ending; entry.increment(error))
    if (entry->symlink_status(ignored).type() != fs::file_type::directory)
      fs::remove(entry->path(), ignored);
  if (ending) return;
  fs::remove_all(folder, error);
  if (error) spdlog::warn("folder {} cannot be removed: {}", folder.native(), error.message());
}

fs::path one_further(const fs::path& aside) {
  return aside.parent_path() / (std::string(kRemovedPrefix) + aside.filename().native());
}

}  // namespace

bool Remover::remove(const fs::path& folder) {
  auto aside = folder;
  for (int i = 0; i < kMostOfAName; ++i) {
    aside = one_further(aside);
    if (::rename(folder.c_str(), aside.c_str()) == 0) {
      finish(aside);
      return true;
    }
    // Else one of that name is being removed yet.
    if (errno != ENOTEMPTY && errno != EEXIST) break;
  }
  if (errno != ENOENT)
    spdlog::warn("folder {} cannot be removed: {}", folder.native(), std::strerror(errno));
  return false;
}

void Remover::finish(const fs::path& aside) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.insert(aside);
  }
  chores_.ask();
}

void Remover::work(const Chores::Ending& ending) {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty() && !ending) {
    const auto folder = waiting_.extract(waiting_.begin());
    lock.unlock();
    remove_now(folder.value(), ending);
    lock.lock();
  }
}

}  // namespace tierpilot::agent
