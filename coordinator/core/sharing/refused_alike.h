// What one look at the queue found nothing for is found nothing for again, as units only get fuller
// while it lasts. Event loop thread only; it outlives no task that it was told of.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/model.h"

namespace tierpilot {

class RefusedAlike {
 public:
  // `is_known`: the task's name tells something of it. Others are alike whatever they are called.
  explicit RefusedAlike(std::function<bool(const TaskSpec&)> is_known)
      : is_known_(std::move(is_known)) {}

  // Null: nobody like it was refused yet.
  const std::string* why(const Task& task) const {
    const auto found = std::find_if(kinds_.begin(), kinds_.end(), [&](const auto& kind) {
      return is_alike(task.spec, *kind.first);
    });
    return found == kinds_.end() || !may_stand_for_others(task) ? nullptr : &found->second;
  }
  void add(const Task& task, const std::string& why) {
    if (kinds_.size() < kMostKinds && may_stand_for_others(task))
      kinds_.emplace_back(&task.spec, why);
  }
  // Units may have become freer.
  void clear() { kinds_.clear(); }

 private:
  static constexpr size_t kMostKinds = 128;  // each is compared with all that wait

  // What it needs for a promise changes, and nodes may keep off who failed there.
  static bool may_stand_for_others(const Task& task) {
    return task.spec.share.promise_ms == 0 && task.faults == 0;
  }
  // All that decides where it may start, and with how much.
  bool is_alike(const TaskSpec& one, const TaskSpec& other) const {
    return one.node == other.node && one.memory_bytes == other.memory_bytes &&
           one.swap_room_bytes == other.swap_room_bytes && one.share == other.share &&
           (one.name == other.name || (!is_known_(one) && !is_known_(other)));
  }

  std::function<bool(const TaskSpec&)> is_known_;
  std::vector<std::pair<const TaskSpec*, std::string>> kinds_;
};

}  // namespace tierpilot
