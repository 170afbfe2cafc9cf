// What becomes of decisions, told to who learns from them and to who judges policies by them.
// Event loop thread only.
#pragma once

#include <cstdint>
#include <map>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/decisions/oversight.h"
#include "coordinator/policy_host/policy_host.h"

namespace tierpilot {

class Credits {
 public:
  // A decision that was carried out.
  struct Placed {
    Oversight::Turn turn;
    int64_t asked_ns = 0;    // boot time; first
    int64_t decided_ns = 0;  // boot time
    bool fell_back = false;
  };

  Credits(ClusterState& state, PolicyHost& host, Oversight& oversight)
      : state_(state), host_(host), oversight_(oversight) {}

  void placed(AttemptId attempt, Placed placed) { in_flight_[attempt] = std::move(placed); }
  // The data of an attempt was served: the reward of its decision is known.
  void served(AttemptId attempt, const ServedData& data);
  // The attempt is over: what it took is known, or never will be.
  void ended(AttemptId attempt, bool succeeded);

 private:
  void credit(const Placed& placed, double reward);
  // By an earlier coordinator's decision; how long ago that was is on disk.
  void ended_from_before(AttemptId attempt);

  ClusterState& state_;
  PolicyHost& host_;
  Oversight& oversight_;
  std::map<AttemptId, Placed> in_flight_;  // placed, and not at their end
};

}  // namespace tierpilot
