#include "policies/sim/look_ahead.h"

#include <algorithm>
#include <span>

namespace tierpilot::sim {

void LookAhead::events(const Event& taken) const {
  at_.events.show_ahead(taken, [&](const Event& event, Soon soon) { expect(event, soon); });
}

void LookAhead::expect(const Event& event, Soon soon) const {
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::kFlow:
      return at_.data.expect_flow(event.generation, soon);
    case EventKind::kReceived:
      return received(event.subject, soon);
    case EventKind::kRunEnd:
      return run_end(event.subject, soon);
    case EventKind::kReported:
      return report(event.subject, soon);
    default:
      return;
  }
}

// The task itself was in use a moment ago, when it was given to the node.
void LookAhead::received(uint32_t task, Soon soon) const {
  const uint32_t node = at_.table[task].node;
  if (node == kNone) return;
  if (soon == Soon::kLater) {
    at_.engines.expect(node);
    at_.data.expect_admission(task);
  } else {
    at_.data.expect_data(task);
  }
}

void LookAhead::run_end(uint32_t task, Soon soon) const {
  if (soon == Soon::kLater) {
    at_.table.expect(task);
    prefetch(at_.workload.tasks[task]);
    at_.data.expect_task(task);
    return;
  }
  const uint32_t node = at_.table[task].node;
  if (node == kNone) return;
  if (soon == Soon::kSoon) {
    at_.engines.expect(node);
    at_.nodes.expect(node);
    at_.data.expect_request(task, node);
  } else {
    at_.data.expect_data(task);
  }
}

void LookAhead::report(uint32_t task, Soon soon) const {
  const Task& what = at_.workload.tasks[task];
  if (soon == Soon::kLater) {
    at_.table.expect(task);
    prefetch(what);
    return;
  }
  const uint32_t node = at_.table[task].node;
  if (node == kNone) return;
  if (soon == Soon::kSoon) {
    at_.nodes.expect(node);
    at_.table.expect_at(node);
    if (what.use_count > 0) prefetch(at_.workload.uses[what.first_use]);
  } else {
    for (const DatasetUse& use : at_.workload.uses_of(what))
      at_.store.datasets().expect(use.dataset);
  }
}

// A decision looks at the nodes that hold the data; of many only at the first few here.
void LookAhead::arrivals(size_t next) const {
  constexpr size_t kDatasetsAhead = 12, kHoldersAhead = 8, kNodesAhead = 4, kMostNodes = 4;
  const auto uses_of = [&](size_t task) {
    return task < at_.workload.tasks.size() ? at_.workload.uses_of(at_.workload.tasks[task])
                                            : std::span<const DatasetUse>();
  };
  for (const auto& use : uses_of(next + kDatasetsAhead)) {
    at_.store.datasets().expect(use.dataset);
    if (use.write) at_.writers.expect(use.dataset);
  }
  for (const auto& use : uses_of(next + kHoldersAhead))
    at_.store.datasets().expect_holders(use.dataset);
  for (const auto& use : uses_of(next + kNodesAhead)) {
    const auto& holders = at_.store.datasets().holders(use.dataset);
    for (size_t i = 0; i < std::min(holders.size(), kMostNodes); ++i)
      at_.nodes.expect(holders[i].node);
  }
}

}  // namespace tierpilot::sim
