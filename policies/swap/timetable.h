// When the program uses which storage: what a planner knows that has read the whole log first.
// Positions are operators in the program's order; the end, where outputs must be there, is one
// more.
#pragma once

#include <vector>

#include "policies/swap/graph.h"

namespace tierpilot::swap {

using Position = uint32_t;

class Timetable {
 public:
  explicit Timetable(const Graph& graph);

  Position end() const { return static_cast<Position>(starts_ns_.size() - 1); }
  // Operators that make or read the storage, rising, each once.
  const std::vector<Position>& uses(StorageId storage) const { return uses_[storage]; }
  // More uses for a plan that keeps the storage beyond the program's own. Rising, each once, all
  // after those that are there.
  void also_used(StorageId storage, const std::vector<Position>& uses) {
    uses_[storage].insert(uses_[storage].end(), uses.begin(), uses.end());
  }
  // The first use after `now`; kNone when there is none.
  Position next_use(StorageId storage, Position now) const;
  // When the operator would begin if nothing ever left.
  int64_t start_ns(Position position) const { return starts_ns_[position]; }
  // Bytes that constants take while the operator runs: they never leave.
  int64_t constant_bytes(Position position) const { return constants_[position]; }

 private:
  std::vector<std::vector<Position>> uses_;
  std::vector<int64_t> starts_ns_, constants_;
};

}  // namespace tierpilot::swap
