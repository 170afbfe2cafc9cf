// The newest checkpoint of each job of which the job was told that it outlives a node: written down
// first, as it stays until the job was told of a later one. Event loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "coordinator/core/cluster_state.h"
#include "model/checkpoint_name.h"

namespace tierpilot {

class ToldSafe {
 public:
  explicit ToldSafe(ClusterState& state) : state_(state) {}

  // Before anything else: reads what jobs were told before a restart.
  Status begin();
  std::optional<CheckpointName> of(uint64_t task) const;
  // Has `tell` called once it is on disk; not where the job was told of it, or of a later one.
  void tell(const CheckpointName& name, std::function<void()> tell);
  template <class Is>
  void forget_if(const Is& is_over) {
    std::erase_if(told_, [&](const auto& told) { return is_over(told.first); });
  }

 private:
  ClusterState& state_;
  std::map<uint64_t, CheckpointName> told_, on_the_way_;  // by task
};

}  // namespace tierpilot
