#include "daemon/agent/tasks/remover.h"

#include <cerrno>
#include <cstdio>
#include <string>

#include "base/log.h"
#include "daemon/exec/options.h"

namespace tierpilot::agent {
namespace fs = std::filesystem;
namespace {

// Looks up between the entries: the daemon may be ending.
void remove_now(const fs::path& folder, const Chores::Ending& ending) {
  std::error_code error, ignored;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && !ending;
       entry.increment(error))
    fs::remove_all(entry->path(), ignored);
  if (ending) return;
  fs::remove_all(folder, error);
  if (error) spdlog::warn("folder {} cannot be removed: {}", folder.native(), error.message());
}

}  // namespace

void Remover::remove(const fs::path& folder) {
  // Where one of that name is being removed yet, this one goes under its own.
  if (!set_aside(folder) && errno != ENOENT) finish(folder);
}

bool Remover::set_aside(const fs::path& folder) {
  const auto aside =
      folder.parent_path() / (std::string(kRemovedPrefix) + folder.filename().native());
  if (::rename(folder.c_str(), aside.c_str()) != 0) return false;
  finish(aside);
  return true;
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
