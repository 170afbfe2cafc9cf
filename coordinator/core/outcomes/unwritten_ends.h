// Attempts that are over, and whose end is not on disk yet: until then their nodes keep them, to
// tell it again to a coordinator that has forgotten it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/model.h"

namespace tierpilot {

class UnwrittenEnds {
 public:
  using Held = std::pair<std::string, AttemptId>;  // what a node keeps

  // The end of the task's attempt is about to be written.
  void add(const Task& task);
  // The task is on disk as it is here. What nodes may let go of; nothing: it was not the end that
  // is waited for.
  std::optional<std::vector<Held>> written(const Task& task);

  bool has(uint64_t task) const { return by_task_.contains(task); }
  std::vector<uint64_t> tasks() const;

 private:
  struct Last {
    uint32_t attempt = 0;
    TaskState state = TaskState::kQueued;
    std::vector<Held> held;  // of attempts before it, too: the disk may be slower than the next one
  };
  std::map<uint64_t, Last> by_task_;
};

}  // namespace tierpilot
