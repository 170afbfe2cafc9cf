// Who takes part in a simulated run.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "policies/sim/simulator.h"

namespace tierpilot::sim {

struct Player {
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Listener> learner;  // null: the policy stays as it is during the run
};

using PlayerMaker = std::function<Result<Player>(const std::string& policy, uint64_t seed)>;

}  // namespace tierpilot::sim
