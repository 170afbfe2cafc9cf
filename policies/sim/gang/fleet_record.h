// A real fleet's record of faults as a cluster: what was known when, and what befell it.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "policies/gang/rates/history.h"
#include "policies/sim/gang/gang_suite.h"

namespace tierpilot::gang {

struct NodeFault {
  double from_day = 0;
  double until_day = 0;
  uint32_t node = 0;
};

// What the rates of policies/gang/rates were on a day, of each node.
struct NodeRates {
  double day = 0;
  std::vector<double> per_day, shape;
};

struct FleetRecord {
  uint32_t nodes = 0;
  std::vector<NodeFault> faults;  // by the day on which they began
  double begin_day = 0, split_day = 0, end_day = 0;
  std::vector<NodeRates> rates;  // at the split, and after faults from then on
};

inline constexpr uint32_t kMaxRecordNodes = 4096;

// `file` is what read_failure_history takes for failures; its groups are not looked at. A fault of
// a unit is one of its node. `nodes`: those that the record does not name had no fault; without it
// there are as many as it names, and 400 at least. Of faults without an end, nodes are back after
// `repair_h`, or at the record's end where the file has a column for that. kInvalid: there is no
// fault in one of its halves, or there are more nodes than that or than kMaxRecordNodes.
Result<FleetRecord> read_fleet_record(const std::filesystem::path& file,
                                      std::optional<uint32_t> nodes, double repair_h);

// How rates of the model are learnt: all of the nodes, in service but while they are under repair.
FailureHistory history_of(const FleetRecord& record);

// Workloads laid over the second half, one beginning every week, on nodes of eight units each: made
// up ones, and ones of larger jobs; or with `suite.trace` those. Rates are of nodes, in equal parts
// those of their units. Each seed has jobs of its own, and its own order of the nodes.
GangSuite replay_suite(std::shared_ptr<const FleetRecord> record, GangSuite suite);

}  // namespace tierpilot::gang
