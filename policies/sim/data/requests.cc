#include "policies/sim/data/requests.h"

namespace tierpilot::sim {

DataRequest& Requests::open(uint32_t task, uint32_t node) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(requests_.size()));
    requests_.emplace_back();
  }
  const uint32_t id = free_.back();
  free_.pop_back();
  of_task_[task] = id;
  DataRequest& request = requests_[id];
  request = DataRequest{};
  request.task = task;
  request.node = node;
  return request;
}

void Requests::leave(RequestLine& line, uint32_t id) {
  uint32_t before = kNone;
  for (uint32_t at = line.first; at != id; at = requests_[at].behind) {
    if (at == kNone) return;
    before = at;
  }
  (before == kNone ? line.first : requests_[before].behind) = requests_[id].behind;
  if (line.last == id) line.last = before;
}

}  // namespace tierpilot::sim
