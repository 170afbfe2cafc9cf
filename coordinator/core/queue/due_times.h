// Whoever sets the clock of the coordinator's machine changes nothing of when promises and
// deadlines are due: the times of their tasks are moved with it. Event loop thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "coordinator/core/cluster_state.h"

namespace tierpilot {

class Lifecycle;

class DueTimes {
 public:
  // The state's heed_clock and heed_clock_of, as long as this is there.
  DueTimes(ClusterState& state, Lifecycle& lifecycle);
  DueTimes(const DueTimes&) = delete;
  DueTimes& operator=(const DueTimes&) = delete;
  ~DueTimes();

  // After a restart: the clock may have been set meanwhile, or before that was written down. Where
  // the machine was rebooted nothing tells.
  void begin();
  // If the clock was set, tasks in the book are due as long from now as before.
  void heed();

 private:
  void heed(const std::vector<uint64_t>& tasks);

  ClusterState& state_;
  Lifecycle& lifecycle_;
  ClockOffset last_;
};

}  // namespace tierpilot
