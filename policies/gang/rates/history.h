// What is known of a fleet's failures: which units were in service when, and what failed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tierpilot::gang {

inline constexpr int32_t kUnknownLevel = -1;

// Something that units have in common: their node, model, batch, rack, ...
struct GroupColumn {
  std::string name;
  std::vector<std::string> levels;
};

// A time in which a unit was in service and nothing about it changed.
struct Service {
  uint32_t unit = 0;
  double begin_day = 0;
  double end_day = 0;
  std::vector<int32_t> levels;  // of each column; kUnknownLevel: not known
};

struct Failure {
  double day = 0;
  uint32_t unit = 0;
  uint32_t kind = 0;
};

struct FailureHistory {
  std::vector<std::string> units;
  std::vector<std::string> kinds;
  std::vector<GroupColumn> columns;  // the node first, when it is not the unit itself
  bool has_nodes = false;
  std::vector<Service> services;  // by unit, then by time
  std::vector<Failure> failures;  // by time
  double begin_day = 0;
  double end_day = 0;
  bool whole_fleet = false;           // units without a failure are in it, too
  uint64_t overlapping_services = 0;  // began before the unit's last one ended; cut off there
  uint64_t outside_service = 0;  // failures of a unit that was not in service then; still counted
};

}  // namespace tierpilot::gang
