#include "policies/swap/link/returns.h"

#include <algorithm>
#include <limits>

namespace tierpilot::swap {

Returns::Returns(const Graph& graph, const Timetable& timetable, const Plan& plan, const Link& link)
    : timetable_(timetable), held_(graph.storages.size()), needs_(timetable.end() + 1) {
  if (!link.exists()) return;
  for (OperatorId op = 0; op < graph.operators.size(); ++op)
    for (const auto output : graph.operators[op].outputs)
      if (graph.tensors[output].owner) needs_[op] += graph.storage_of(output).bytes;
  for (StorageId storage = 0; storage < graph.storages.size(); ++storage)
    for (const auto& absence : plan.absences[storage])
      if (absence.action == Action::kSwap) returns_.push_back({0, absence.to, storage});
  std::sort(returns_.begin(), returns_.end(), [](const auto& a, const auto& b) {
    return a.use != b.use ? a.use < b.use : a.storage < b.storage;
  });
  int64_t latest_ns = std::numeric_limits<int64_t>::max();
  for (auto at = returns_.rbegin(); at != returns_.rend(); ++at) {
    latest_ns = std::min(latest_ns, timetable.start_ns(at->use) - link.latency_ns) -
                link.copy_ns(graph.storages[at->storage].bytes);
    at->latest_start_ns = latest_ns;
  }
}

int64_t Returns::ahead_bytes(Position op) const {
  int64_t most = 0;
  for (Position at = op; at < std::min(op + kHorizon, timetable_.end()); ++at)
    most = std::max(most, needs_[at]);
  return most;
}

}  // namespace tierpilot::swap
