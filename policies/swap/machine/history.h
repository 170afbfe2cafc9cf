// What the program has done so far: which operators have run, what they cost, what it still has
// names for. A recomputation is none of its doings.
#pragma once

#include <utility>
#include <vector>

#include "policies/swap/graph.h"

namespace tierpilot::swap {

class ProgramHistory {
 public:
  explicit ProgramHistory(size_t storages) : records_(storages) {}

  bool has_run(OperatorId op) const { return op < runs_; }
  // Whether the program has a handle on it.
  bool referenced(StorageId storage) const { return records_[storage].handles > 0; }
  int64_t last_access_ns(StorageId storage) const { return records_[storage].accessed_ns; }
  // Time of the operators that made its tensors so far.
  int64_t cost_ns(StorageId storage) const { return records_[storage].cost_ns; }

  void ran(OperatorId op) { runs_ = op + 1; }
  void accessed(StorageId storage, int64_t now_ns) { records_[storage].accessed_ns = now_ns; }
  void retain(StorageId storage) { ++records_[storage].handles; }
  // Whether that was the last handle.
  bool release(StorageId storage) { return --records_[storage].handles == 0; }
  // The operator, which has just run, has made a tensor in it.
  void made(StorageId storage, OperatorId maker, int64_t took_ns, int64_t now_ns) {
    auto& record = records_[storage];
    ++record.handles;
    if (std::exchange(record.last_maker, maker) != maker) record.cost_ns += took_ns;
    record.accessed_ns = now_ns;
  }

 private:
  struct Record {
    int64_t accessed_ns = 0, cost_ns = 0;
    int64_t handles = 0;
    OperatorId last_maker = kNone;  // whose time is in cost_ns already
  };

  OperatorId runs_ = 0;
  std::vector<Record> records_;
};

}  // namespace tierpilot::swap
