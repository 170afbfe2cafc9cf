// An attempt on this node, from its assignment until nobody asks for it any more.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "daemon/agent/node/model.h"
#include "daemon/agent/tasks/cpu_allocator.h"
#include "daemon/agent/tasks/port_hold.h"
#include "daemon/agent/tasks/task_runner.h"

namespace tierpilot::agent {

inline constexpr uint32_t kMilli = 1000;

// See task_table.h. blocked: an earlier attempt of the task has not ended.
enum class Stage { kBlocked, kStaging, kReady, kRunning, kCommitting, kEnded };

inline std::string label(AttemptId id) {
  return fmt::format("task {} attempt {}", id.task, id.attempt);
}

struct Attempt {
  Assignment assignment;
  uint64_t arrival = 0;
  int64_t received_ns = 0;
  Stage stage = Stage::kBlocked;
  std::vector<ServedItem> datasets;
  std::optional<PortHold> port;  // until it is launched
  CpuAllocator::Grant grant;
  int32_t pid = 0;                 // 0: not started yet
  uint32_t milli_units = 0;        // of one that runs and is elastic or has a part of a unit
  CpuShare confined;               // as it was told last
  std::optional<ExitReport> doom;  // decided while the pool is still busy with it
  uint64_t ending = 0;             // order of ending
  bool acknowledged = false;
  bool released = false;

  using ReadyPlace = std::tuple<int64_t, double, uint64_t>;  // reckoning, place, arrival

  AttemptId id() const { return assignment.attempt; }
  bool launched() const { return stage >= Stage::kRunning; }
  uint32_t least_milli() const { return assignment.units * kMilli; }
  bool is_elastic() const { return stage == Stage::kRunning && assignment.max_units > 0; }
  bool has_share() const { return stage == Stage::kRunning && assignment.part.has_value(); }
  ReadyPlace place() const { return {assignment.reckoning, assignment.place_s, arrival}; }
};

}  // namespace tierpilot::agent
