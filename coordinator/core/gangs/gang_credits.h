// What becomes of decisions about gangs, told to who judges policies by it. A try is measured when
// it is known what is kept of its work: at its end where it succeeded or was the last, else when
// the next one begins. Forgotten when the coordinator restarts. Event loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/decisions/oversight.h"
#include "coordinator/core/outcomes/task_end.h"

namespace tierpilot {

class GangCredits {
 public:
  GangCredits(ClusterState& state, Oversight& oversight) : state_(state), oversight_(oversight) {}

  // Before a try: that is what is left of the one before it.
  void goes_on_from(const Task& gang, const std::string& checkpoint);
  // A try was given its units, by this decision, and begins from this checkpoint.
  void placed(const Task& gang, Oversight::Turn turn, const std::string& checkpoint);
  // While state.gangs still has the try as running.
  void ended(const Task& gang, Fate fate);
  size_t open() const { return tries_.size(); }

 private:
  struct Try {
    Oversight::Turn turn;
    std::string checkpoint;
    int64_t placed_ns = 0;  // boot time
    double stalled_before_h = 0;
    double held_h = -1;  // negative: it has not ended
  };

  // `kept_h`: since its checkpoint; `share`: of the job's iterations, up to which its work is kept;
  // negative: not told.
  void measure(const Task& gang, const Try& last, double kept_h, double share);

  ClusterState& state_;
  Oversight& oversight_;
  std::map<uint64_t, Try> tries_;  // by gang
};

}  // namespace tierpilot
