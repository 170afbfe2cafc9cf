// Removes folders with what is in them on a thread of its own: of millions of files that takes
// longer than a lease lasts.
#pragma once

#include <filesystem>
#include <mutex>
#include <set>

#include "daemon/agent/tasks/chores.h"

namespace tierpilot::agent {

class Remover {
 public:
  Remover() = default;
  Remover(const Remover&) = delete;
  Remover& operator=(const Remover&) = delete;

  // The folder has another name at once (kRemovedPrefix), so that its own is free, and is removed
  // then. What is left when the daemon ends, the next one removes. False: it is not there, or
  // cannot be renamed and stays.
  bool remove(const std::filesystem::path& folder);
  // What has such a name already.
  void finish(const std::filesystem::path& aside);

 private:
  void work(const Chores::Ending& ending);

  std::mutex mutex_;
  std::set<std::filesystem::path> waiting_;                                // with the mutex
  Chores chores_{[this](const Chores::Ending& ending) { work(ending); }};  // the last: uses both
};

}  // namespace tierpilot::agent
