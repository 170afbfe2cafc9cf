// What events that are soon to come will touch is brought into the caches: first what the event
// names, then what that names, and so on.
#include <algorithm>

#include "policies/sim/simulation.h"

namespace tierpilot::sim {

void Simulation::look_ahead(const Event& taken) const {
  events_.show_ahead(taken, [&](const Event& event, Soon soon) { expect(event, soon); });
}

void Simulation::expect(const Event& event, Soon soon) const {
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::kFlow:
      return data_.expect_flow(event.generation, soon);
    case EventKind::kReceived:
      return expect_received(event.subject, soon);
    case EventKind::kRunEnd:
      return expect_at_node(event.subject, soon);
    case EventKind::kReported:
      return expect_report(event.subject, soon);
    default:
      return;
  }
}

// The task itself was in use a moment ago, when it was given to the node.
void Simulation::expect_received(uint32_t task, Soon soon) const {
  const uint32_t node = states_[task].node;
  if (node == kNone) return;
  if (soon == Soon::kLater) {
    engines_.expect(node);
    data_.expect_admission(task);
  } else {
    data_.expect_data(task);
  }
}

void Simulation::expect_at_node(uint32_t task, Soon soon) const {
  const State& state = states_[task];
  if (soon == Soon::kLater) {
    prefetch(state);
    prefetch(workload_.tasks[task]);
    data_.expect_task(task);
  } else if (state.node == kNone) {
    return;
  } else if (soon == Soon::kSoon) {
    engines_.expect(state.node);
    view_.expect(state.node);
    data_.expect_request(task, state.node);
  } else {
    data_.expect_data(task);
  }
}

void Simulation::expect_report(uint32_t task, Soon soon) const {
  const State& state = states_[task];
  const Task& what = workload_.tasks[task];
  if (soon == Soon::kLater) {
    prefetch(state);
    prefetch(what);
  } else if (state.node == kNone) {
    return;
  } else if (soon == Soon::kSoon) {
    view_.expect(state.node);
    prefetch(held_[state.node]);
    if (what.use_count > 0) prefetch(workload_.uses[what.first_use]);
  } else {
    for (const DatasetUse& use : workload_.uses_of(what)) store_.expect(use.dataset);
  }
}

// A decision looks at the nodes that hold the data; of many only at the first few here.
void Simulation::expect_arrivals(size_t arrived) const {
  constexpr size_t kDatasetsAhead = 12, kHoldersAhead = 8, kNodesAhead = 4, kMostNodes = 4;
  const auto uses_of = [&](size_t task) {
    return task < workload_.tasks.size() ? workload_.uses_of(workload_.tasks[task])
                                         : std::span<const DatasetUse>();
  };
  for (const auto& use : uses_of(arrived + kDatasetsAhead)) {
    store_.expect(use.dataset);
    if (use.write) prefetch(writer_[use.dataset]);
  }
  for (const auto& use : uses_of(arrived + kHoldersAhead)) store_.expect_holders(use.dataset);
  for (const auto& use : uses_of(arrived + kNodesAhead)) {
    const auto& holders = store_.holders(use.dataset);
    for (size_t i = 0; i < std::min(holders.size(), kMostNodes); ++i) view_.expect(holders[i].node);
  }
}

void DataPlane::expect_request(uint32_t task, uint32_t node) const {
  prefetch(nodes_[node]);
  prefetch(store_.cache(node));
  if (const uint32_t id = request_of_[task]; id != kNone) prefetch(requests_[id]);
}

void DataPlane::expect_admission(uint32_t task) const {
  const uint32_t id = request_of_[task];
  if (id == kNone) return;
  const Request& request = requests_[id];
  prefetch(nodes_[request.node]);
  prefetch(store_.cache(request.node));
  for (const Item& item : request.items) store_.expect(request.node, item.dataset);
}

void DataPlane::expect_data(uint32_t task) const {
  if (const uint32_t id = request_of_[task]; id != kNone) expect_data_of(id);
}

void DataPlane::expect_data_of(uint32_t id) const {
  const Request& request = requests_[id];
  for (const Item& item : request.items) {
    const Replica* const here =
        item.replica ? item.replica : store_.newest(request.node, item.dataset);
    if (here) prefetch(*here);
  }
}

void DataPlane::expect_flow(uint32_t flow, Soon soon) const {
  if (soon == Soon::kLater) {
    flows_.expect(flow);
  } else if (soon == Soon::kSoon) {
    flows_.expect_links(flow);
    prefetch(requests_[flows_.owner(flow)]);
  } else {
    const Request& request = requests_[flows_.owner(flow)];
    prefetch(nodes_[request.node]);
    prefetch(store_.cache(request.node));
    expect_data_of(flows_.owner(flow));
  }
}

void Flows::expect_links(uint32_t flow) const {
  for (const uint32_t link : flows_[flow].links)
    if (link != kNoLink) prefetch(links_[link]);
}

}  // namespace tierpilot::sim
