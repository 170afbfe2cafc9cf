#include "policies/swap/graph.h"

#include <algorithm>

namespace tierpilot::swap {

Baseline baseline(const Graph& graph) {
  Baseline base;
  int64_t used = 0;
  std::vector<int64_t> handles(graph.storages.size());
  const auto take = [&](const Tensor& tensor) {
    ++handles[tensor.storage];
    if (tensor.owner) used += graph.storages[tensor.storage].bytes;
    base.peak_bytes = std::max(base.peak_bytes, used);
  };
  for (const auto& [kind, id] : graph.events) switch (kind) {
      case Event::Kind::kConstant:
        take(graph.tensors[graph.storages[id].tensors.front()]);
        break;
      case Event::Kind::kRun:
        for (const auto output : graph.operators[id].outputs) take(graph.tensors[output]);
        base.time_ns += graph.operators[id].time_ns;
        break;
      case Event::Kind::kRetain:
        ++handles[graph.tensors[id].storage];
        break;
      case Event::Kind::kDrop:
        const auto storage = graph.tensors[id].storage;
        if (--handles[storage] == 0) used -= graph.storages[storage].bytes;
        break;
    }
  return base;
}

}  // namespace tierpilot::swap
