#include "daemon/agent/tasks/remover.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/files/tree_removal.h"
#include "base/log.h"
#include "daemon/exec/options.h"

namespace tierpilot::agent {
namespace fs = std::filesystem;
namespace {

constexpr int kMostOfAName = 8;  // that are being removed at a time

void remove_now(const fs::path& folder, const Chores::Ending& ending) {
  const int error = remove_tree(folder, [&] { return !ending; });
  if (error != 0 && !ending)
    spdlog::warn("folder {} cannot be removed: {}", folder.native(), std::strerror(error));
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
