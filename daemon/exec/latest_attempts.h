// The latest attempt of every task that was launched here, until it is forgotten.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tierpilot {

class LatestAttempts {
 public:
  // kConflict when this or a later attempt was launched before, or another attempt still runs.
  Status check_new(uint64_t task_id, uint32_t attempt) const {
    const auto known = attempts_.find(task_id);
    if (known == attempts_.end()) return {};
    const auto& latest = known->second;
    if (latest.running)
      return fail(ErrorCode::kConflict,
                  fmt::format("task {}: attempt {} has not ended", task_id, latest.attempt));
    if (attempt <= latest.attempt)
      return fail(ErrorCode::kConflict,
                  fmt::format("task {}: attempt {} was launched already", task_id, latest.attempt));
    return {};
  }
  // kNotFound.
  Status check_running(uint64_t task_id, uint32_t attempt) const {
    const auto known = attempts_.find(task_id);
    if (known != attempts_.end() && known->second.running && known->second.attempt == attempt)
      return {};
    return fail(ErrorCode::kNotFound,
                fmt::format("task {}: attempt {} does not run here", task_id, attempt));
  }

  void launched(uint64_t task_id, uint32_t attempt) { attempts_[task_id] = {attempt, true}; }
  void ended(uint64_t task_id) {
    const auto known = attempts_.find(task_id);
    if (known != attempts_.end()) known->second.running = false;
  }
  // All that run end: tasks and attempts.
  std::vector<std::pair<uint64_t, uint32_t>> end_all() {
    std::vector<std::pair<uint64_t, uint32_t>> ended;
    for (auto& [task_id, latest] : attempts_)
      if (std::exchange(latest.running, false)) ended.push_back({task_id, latest.attempt});
    return ended;
  }
  // Nothing of a task that runs.
  void forget(uint64_t task_id) {
    const auto known = attempts_.find(task_id);
    if (known != attempts_.end() && !known->second.running) attempts_.erase(known);
  }

 private:
  struct Attempt {
    uint32_t attempt;
    bool running;
  };
  std::unordered_map<uint64_t, Attempt> attempts_;  // by task
};

}  // namespace tierpilot
