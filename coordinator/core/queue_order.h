// In which order the queue is served, after policies/service_order.h.
#pragma once

#include "coordinator/model.h"
#include "policies/service_order.h"

namespace tierpilot {

// The float operations that a task says it takes, its int32 operations converted.
double operations_of(const TaskSpec& spec, double int32_to_float);

// Places are reckoned with figures that stand still, or of two tasks that are alike the later one
// could come to stand first, for as long as a change of the figures makes their times differ.
class QueueOrder {
 public:
  ClusterPace pace;  // as it is now

  // Where the task stands; always finite.
  double place_s(ServiceOrder order, const Task& task) const;
  // How much later its turn is while no node with room has so many bytes of its data in fast
  // memory.
  double far_s(ServiceOrder order, uint64_t far_bytes) const {
    return pace.far_s(order, far_bytes);
  }
  // Reckons with the figures as they are now if they have changed by a quarter. True: all places
  // are to be reckoned anew.
  bool renew(ServiceOrder order, double int32_to_float);

 private:
  struct Figures {
    ClusterPace pace;
    double int32_to_float = 1;
  };
  Figures figures_;
};

}  // namespace tierpilot
