#include "policies/swap/timetable.h"

#include <algorithm>

namespace tierpilot::swap {

Timetable::Timetable(const Graph& graph) : uses_(graph.storages.size()) {
  const auto use = [&](TensorId tensor, Position at) {
    auto& uses = uses_[graph.tensors[tensor].storage];
    if (uses.empty() || uses.back() != at) uses.push_back(at);
  };
  int64_t now_ns = 0, constants = 0;
  for (const auto& [kind, id] : graph.events) {
    if (kind == Event::Kind::kConstant) constants += graph.storages[id].bytes;
    if (kind != Event::Kind::kRun) continue;
    starts_ns_.push_back(now_ns);
    constants_.push_back(constants);
    now_ns += graph.operators[id].time_ns;
    for (const auto arg : graph.operators[id].args) use(arg, id);
    for (const auto output : graph.operators[id].outputs) use(output, id);
  }
  starts_ns_.push_back(now_ns);
  constants_.push_back(constants);
  for (const auto output : graph.outputs) use(output, end());
}

Position Timetable::next_use(StorageId storage, Position now) const {
  const auto& uses = uses_[storage];
  const auto found = std::upper_bound(uses.begin(), uses.end(), now);
  return found == uses.end() ? kNone : *found;
}

}  // namespace tierpilot::swap
