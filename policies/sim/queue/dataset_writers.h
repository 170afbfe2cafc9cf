// Which task may write which dataset: one at a time, from the decision where it runs until the
// coordinator knows of its end. And which dataset a task has to wait for.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/sim/data/prefetch.h"
#include "policies/sim/data/replica_store.h"
#include "policies/sim/model/workload.h"

namespace tierpilot::sim {

class DatasetWriters {
 public:
  DatasetWriters(const Workload& workload, const ReplicaStore& store);

  // A dataset of the task's that nobody has just now, or that it would write while another task
  // may; kNone: it has to wait for none.
  uint32_t missing(uint32_t task) const {
    for (const DatasetUse& use : workload_.uses_of(workload_.tasks[task]))
      if (store_.datasets().holders(use.dataset).empty() ||
          (use.write && writers_[use.dataset] != kNone))
        return use.dataset;
    return kNone;
  }
  // A dataset of the task's is gone for good.
  bool lost(uint32_t task) const;

  void begin(uint32_t task) {
    for (const DatasetUse& use : workload_.uses_of(workload_.tasks[task]))
      if (use.write && writers_[use.dataset] == kNone) writers_[use.dataset] = task;
  }
  // Calls freed(dataset) with each that another task may write now.
  template <class Freed>
  void end(uint32_t task, Freed freed) {
    for (const DatasetUse& use : workload_.uses_of(workload_.tasks[task])) {
      if (!use.write || writers_[use.dataset] != task) continue;
      writers_[use.dataset] = kNone;
      freed(use.dataset);
    }
  }
  // Asks for memory that begin() will touch.
  void expect(uint32_t dataset) const { prefetch(writers_[dataset]); }

 private:
  const Workload& workload_;
  const ReplicaStore& store_;
  std::vector<uint32_t> writers_;  // by dataset: the task; kNone: none
};

}  // namespace tierpilot::sim
