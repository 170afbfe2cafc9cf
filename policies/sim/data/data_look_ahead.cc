// What coming events will touch of tasks' data (policies/sim/look_ahead.h).
#include "policies/sim/data/data_plane.h"

namespace tierpilot::sim {

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

}  // namespace tierpilot::sim
