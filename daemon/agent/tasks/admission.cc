#include "daemon/agent/tasks/admission.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/agent/tasks/task_env.h"

namespace tierpilot::agent {

Status check_admissible(const Assignment& assignment, const NodeLimits& limits,
                        const Attempts& attempts) {
  const auto refuse = [&](ErrorCode code, std::string why) {
    return fail(code, fmt::format("{}: {}", label(assignment.attempt), why));
  };
  if (assignment.argv.empty() || assignment.argv.front().empty())
    return refuse(ErrorCode::kInvalid, "the command is empty");
  if (assignment.units == 0) return refuse(ErrorCode::kInvalid, "asks for no compute unit");
  // Of these two the coordinator may know better by now: the configuration has changed.
  if (const auto& part = assignment.part; part && part->unit >= limits.shared_units.size())
    return refuse(ErrorCode::kExhausted,
                  fmt::format("has a part of shared unit {}, this node has {} of them", part->unit,
                              limits.shared_units.size()));
  if (!assignment.part && assignment.units > limits.units)
    return refuse(ErrorCode::kExhausted, fmt::format("needs {} compute units, this node has {}",
                                                     assignment.units, limits.units));
  if (assignment.memory_limit_bytes > limits.memory_bytes)
    return refuse(ErrorCode::kExhausted,
                  fmt::format("needs {} bytes of memory, this node offers {}",
                              assignment.memory_limit_bytes, limits.memory_bytes));
  if (assignment.swap_room_bytes > limits.swap_room_bytes)
    return refuse(ErrorCode::kExhausted,
                  fmt::format("needs {} bytes of room for swapping, this node offers {}",
                              assignment.swap_room_bytes, limits.swap_room_bytes));
  if (assignment.rank && !assignment.rank->place.cpu_units.empty()) {
    const auto& among = assignment.rank->place.cpu_units;
    const auto there = std::count_if(among.begin(), among.end(),
                                     [&](uint32_t unit) { return unit < limits.units; });
    if (static_cast<uint64_t>(there) < assignment.units)
      return refuse(ErrorCode::kExhausted,
                    fmt::format("needs {} of compute units of which this node has {}",
                                assignment.units, there));
  }
  if (auto status = check_dataset_env(assignment.datasets); !status)
    return refuse(status.error().code, status.error().message);
  if (attempts.unended() >= limits.max_live)
    return refuse(ErrorCode::kExhausted,
                  fmt::format("this node holds {} attempts already", limits.max_live));
  return {};
}

}  // namespace tierpilot::agent
