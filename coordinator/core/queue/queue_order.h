// In which order the queue is served, after policies/scheduling/service_order.h.
#pragma once

#include "coordinator/model.h"
#include "policies/scheduling/service_order.h"

namespace tierpilot {

// The float operations that a task says it takes, its int32 operations converted.
double operations_of(const TaskSpec& spec, double int32_to_float);

// Places are reckoned with figures that stand still, or of two tasks that are alike the later one
// could come to stand first, for as long as a change of the figures makes their times differ.
class QueueOrder {
 public:
  // What tasks have shown. A rate that no processor or link has is not believed: who claims one
  // would upset the order of all for thousands of tasks. Nor does it say how fast links are how
  // long next to nothing took.
  void ran(double operations, double seconds);
  void fetched(double bytes, double seconds);

  // Where the task stands; always finite. It came now at the latest, whatever the clock said then.
  double place_s(ServiceOrder order, const Task& task, int64_t now_ms) const;
  // How much later its turn is while no node with room has so many bytes of its data in fast
  // memory.
  double far_s(ServiceOrder order, uint64_t far_bytes) const {
    return pace_.far_s(order, far_bytes);
  }
  // Reckons with the figures as they are now if they have changed by a quarter. True: all places
  // are to be reckoned anew.
  bool renew(ServiceOrder order, double int32_to_float);

 private:
  struct Figures {
    ClusterPace pace;
    double int32_to_float = 1;
  };
  ClusterPace pace_;  // as it is now
  Figures figures_;
};

}  // namespace tierpilot
