// What waits and runs, by user, and how much of it is taken: a client that submits without end must
// not take the memory, or the queue, of all.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "coordinator/model.h"

namespace tierpilot {

// Of tasks that have not ended.
struct QueueLimits {
  uint64_t tasks = 1'000'000;
  uint64_t tasks_per_user = 250'000;
  uint64_t bytes = uint64_t{4} << 30;  // of memory, see task_bytes()
  uint64_t bytes_per_user = uint64_t{1} << 30;
};

// What a task takes of memory while it has not ended, about.
uint64_t task_bytes(const TaskSpec& spec);

class QueueLoad {
 public:
  struct Load {
    uint64_t tasks = 0;
    uint64_t bytes = 0;
  };

  void add(const std::string& user, const Load& load);
  void remove(const std::string& user, const Load& load);
  // kExhausted when `more` of this user would go beyond; names the limit.
  Status room_for(const QueueLimits& limits, const std::string& user, const Load& more) const;

 private:
  Load all_;
  std::map<std::string, Load> by_user_;  // none that has nothing
};

}  // namespace tierpilot
