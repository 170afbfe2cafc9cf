#include "coordinator/core/nodes/node_record.h"

#include <fmt/format.h>

namespace tierpilot {

const char* node_life_name(NodeLife life) {
  switch (life) {
    case NodeLife::kExpected:
      return "expected";
    case NodeLife::kUp:
      return "up";
    case NodeLife::kLost:
      break;
  }
  return "lost";
}

NodeRates NodeRecord::rates() const {
  NodeRates all = facts.rates;
  all.operations_per_s = operations.per_s();
  all.fetch_bytes_per_s = fetches.per_s();
  return all;
}

void NodeRecord::count(Task& task, double operations, uint64_t fetch_bytes) {
  task.counted_operations = operations * task.spec.units;
  task.counted_fetch_bytes = fetch_bytes;
  assigned_operations += task.counted_operations;
  assigned_fetch_bytes += fetch_bytes;
}

void NodeRecord::count_served(Task& task) {
  assigned_fetch_bytes -= std::min(assigned_fetch_bytes, task.counted_fetch_bytes);
  task.counted_fetch_bytes = 0;
}

void NodeRecord::uncount(Task& task) {
  count_served(task);
  assigned_operations -= task.counted_operations;
  task.counted_operations = 0;
  if (held.empty()) assigned_operations = 0;  // what rounding left
}

std::string NodeRecord::closed_because() const {
  if (!takes_none.empty()) return takes_none;
  switch (order.kind) {
    case NodeOrder::Kind::kCordoned:
      return fmt::format("cordoned by {}: it gets no new tasks", order.who);
    case NodeOrder::Kind::kDrained:
      return tasks_left() == 0
                 ? fmt::format("drained by {}: no task is left on it", order.who)
                 : fmt::format("drained by {}: {} tasks are left on it", order.who, tasks_left());
    case NodeOrder::Kind::kNone:
      break;
  }
  return health.why();
}

}  // namespace tierpilot
