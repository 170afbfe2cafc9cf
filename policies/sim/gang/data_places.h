// Where data and checkpoints of jobs are, and how long a node needs to have them.
#pragma once

#include <set>

#include "policies/sim/gang/gang_scene.h"

namespace tierpilot::gang {

// Nodes that once fetched a job's data keep it; its checkpoint is where it last ran.
class DataPlaces {
 public:
  explicit DataPlaces(const GangScene& scene);

  // Of each unit, as PlacementState has it.
  std::vector<double> fetch_h(uint32_t job) const;
  double hours(uint32_t job, uint32_t node) const;
  // It had all that it needed on these nodes, and leaves a checkpoint there.
  void ran(uint32_t job, const std::set<uint32_t>& nodes);

 private:
  struct Places {
    std::set<uint32_t> data, checkpoint;
  };
  const GangScene& scene_;
  std::vector<Places> jobs_;  // empty: nothing is fetched
};

}  // namespace tierpilot::gang
