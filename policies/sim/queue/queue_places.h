// Where tasks stand in the coordinator's queue (policies/scheduling/service_order.h), equals by
// their numbers, which is the order of arrival. Nodes begin what they have been given in the same
// order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/large_pages.h"
#include "policies/scheduling/service_order.h"

namespace tierpilot::sim {

class QueuePlaces {
 public:
  explicit QueuePlaces(size_t tasks) : places_s_(tasks) {}
  // Where the task stands, or stood last.
  QueuePlace of(uint32_t task) const { return {places_s_[task], task}; }
  void set(uint32_t task, double place_s) { places_s_[task] = place_s; }

 private:
  LargeVector<double> places_s_;  // by task
};

}  // namespace tierpilot::sim
