// How much room folders take with all that is in them, found out on a thread of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "daemon/agent/tasks/chores.h"

namespace tierpilot::agent {

class TreeSizes {
 public:
  struct Tree {
    std::filesystem::path path;
    int64_t modified_ns = 0;  // of the folder itself: once it changes it is measured again
  };

  TreeSizes() = default;
  TreeSizes(const TreeSizes&) = delete;
  TreeSizes& operator=(const TreeSizes&) = delete;

  // In their order; nothing: not known yet, and measured soon. What is known of others is
  // forgotten.
  std::vector<std::optional<uint64_t>> of(const std::vector<Tree>& trees);
  // Some of the last ones are not known yet.
  bool measuring() const;

 private:
  struct Known {
    int64_t modified_ns = 0;
    std::optional<uint64_t> bytes;
  };

  void work(const Chores::Ending& ending);
  std::vector<Tree> unknown() const;

  mutable std::mutex mutex_;
  std::map<std::filesystem::path, Known> known_;                           // with the mutex
  Chores chores_{[this](const Chores::Ending& ending) { work(ending); }};  // the last: uses both
};

}  // namespace tierpilot::agent
