// Whoever sets the clock of the coordinator's machine changes nothing of when promises are due: the
// times of their tasks are moved with it. Event loop thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "coordinator/core/cluster_state.h"

namespace tierpilot {

class Lifecycle;

class PromiseClock {
 public:
  PromiseClock(ClusterState& state, Lifecycle& lifecycle);

  // After a restart: the clock may have been set meanwhile, or before that was written down. Where
  // the machine was rebooted nothing tells.
  void begin();
  // If the clock was set, those in the book are due as long from now as before.
  void heed();
  void heed(const std::vector<uint64_t>& tasks);

 private:
  ClusterState& state_;
  Lifecycle& lifecycle_;
  ClockOffset last_;
};

}  // namespace tierpilot
