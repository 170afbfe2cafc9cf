// What folders of ended attempts take on the disk. Those of few files are looked at at once, the
// others on a thread of its own: a walk over a million files takes longer than a lease lasts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "daemon/agent/tasks/chores.h"

namespace tierpilot::agent {

class TreeSizes {
 public:
  // Takes the files that it looks at from `files_at_once`. Nothing: it is being measured.
  std::optional<uint64_t> of(const std::filesystem::path& folder, size_t& files_at_once);
  void forget(const std::filesystem::path& folder);
  bool is_measuring() const;

 private:
  void work(const Chores::Ending& ending);

  mutable std::mutex mutex_;
  std::map<std::filesystem::path, std::optional<uint64_t>> bytes_;         // with the mutex
  Chores chores_{[this](const Chores::Ending& ending) { work(ending); }};  // the last: uses both
};

}  // namespace tierpilot::agent
