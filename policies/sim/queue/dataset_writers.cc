#include "policies/sim/queue/dataset_writers.h"

#include <algorithm>

namespace tierpilot::sim {

DatasetWriters::DatasetWriters(const Workload& workload, const ReplicaStore& store)
    : workload_(workload), store_(store), writers_(workload.datasets.size(), kNone) {}

uint32_t DatasetWriters::missing(uint32_t task) const {
  for (const DatasetUse& use : workload_.uses_of(workload_.tasks[task]))
    if (store_.holders(use.dataset).empty() || (use.write && writers_[use.dataset] != kNone))
      return use.dataset;
  return kNone;
}

bool DatasetWriters::lost(uint32_t task) const {
  const auto uses = workload_.uses_of(workload_.tasks[task]);
  return std::any_of(uses.begin(), uses.end(), [&](const DatasetUse& use) {
    return store_.lost(use.dataset) && writers_[use.dataset] == kNone;
  });
}

void DatasetWriters::begin(uint32_t task) {
  for (const DatasetUse& use : workload_.uses_of(workload_.tasks[task]))
    if (use.write && writers_[use.dataset] == kNone) writers_[use.dataset] = task;
}

}  // namespace tierpilot::sim
