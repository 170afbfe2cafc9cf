// What coming events will touch of tasks' data (policies/sim/look_ahead.h).
#include "policies/sim/data/data_plane.h"

namespace tierpilot::sim {

void DataPlane::expect_request(uint32_t task, uint32_t node) const {
  admission_.expect(node);
  commits_.expect(node);
  room_.expect(node);
  prefetch(store_.cache(node));
  if (const uint32_t id = requests_.of(task); id != kNone) requests_.expect(id);
}

void DataPlane::expect_admission(uint32_t task) const {
  const uint32_t id = requests_.of(task);
  if (id == kNone) return;
  const DataRequest& request = requests_[id];
  admission_.expect(request.node);
  transfers_.expect(request.node);
  prefetch(store_.cache(request.node));
  for (const DataItem& item : request.items) store_.expect(request.node, item.dataset);
}

void DataPlane::expect_data(uint32_t task) const {
  if (const uint32_t id = requests_.of(task); id != kNone) expect_data_of(requests_[id]);
}

void DataPlane::expect_data_of(const DataRequest& request) const {
  for (const DataItem& item : request.items) {
    const Replica* const here =
        item.replica ? item.replica : store_.newest(request.node, item.dataset);
    if (here) prefetch(*here);
  }
}

void DataPlane::expect_flow(uint32_t flow, Soon soon) const {
  if (soon == Soon::kLater) return transfers_.expect_flow(flow);
  const uint32_t id = transfers_.request_of(flow);
  if (soon == Soon::kSoon) {
    transfers_.expect_links(flow);
    return requests_.expect(id);
  }
  const DataRequest& request = requests_[id];
  admission_.expect(request.node);
  transfers_.expect(request.node);
  room_.expect(request.node);
  prefetch(store_.cache(request.node));
  expect_data_of(request);
}

}  // namespace tierpilot::sim
