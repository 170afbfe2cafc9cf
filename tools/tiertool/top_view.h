// What "top" shows: two looks at the machine as one value, with rates, and its text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tools/tiertool/top_reading.h"

namespace tierpilot::tiertool {

enum class TopOrder { kMemory, kSlow, kFaults, kCpu };
inline constexpr TopOrder kTopOrders[] = {TopOrder::kMemory, TopOrder::kSlow, TopOrder::kFaults,
                                          TopOrder::kCpu};

// "memory", "slow" (memory that is not in the fastest tier), "faults", "cpu".
std::string_view order_name(TopOrder order);
Result<TopOrder> order_from_name(std::string_view name);

struct TopSubject {
  const MachineReading& before;
  const MachineReading& now;
  const std::vector<PagingTier>& tiers;  // fast to slow, with loaded latencies where known
};

// {"interval_s", "nodes": [...], "per_second": {...}, "pressure": {...}, "order",
// "processes": [...]}, at most `limit` processes.
nlohmann::ordered_json top_value(const TopSubject& subject, TopOrder order, size_t limit);
std::string top_text(const nlohmann::ordered_json& value);

}  // namespace tierpilot::tiertool
