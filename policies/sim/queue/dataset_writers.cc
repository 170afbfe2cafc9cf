#include "policies/sim/queue/dataset_writers.h"

#include <algorithm>

namespace tierpilot::sim {

DatasetWriters::DatasetWriters(const Workload& workload, const ReplicaStore& store)
    : workload_(workload), store_(store), writers_(workload.datasets.size(), kNone) {}

bool DatasetWriters::lost(uint32_t task) const {
  const auto uses = workload_.uses_of(workload_.tasks[task]);
  return std::any_of(uses.begin(), uses.end(), [&](const DatasetUse& use) {
    return store_.datasets().lost(use.dataset) && writers_[use.dataset] == kNone;
  });
}

}  // namespace tierpilot::sim
