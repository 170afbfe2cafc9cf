// What a cluster knows of its units: when they failed, and how often they are likely to.
#pragma once

#include "policies/gang/placement/placer.h"
#include "policies/sim/gang/gang_scene.h"

namespace tierpilot::gang {

// Keeps per_h, rate_shape and failed_h of a PlacementState: the posterior mean of each unit's rate
// (Gamma-Poisson; old days fade, and idle ones do not count, as nothing would have been seen), or
// what the scene's told rates say.
class UnitKnowledge {
 public:
  // Both outlive it. `state.now_h` is the time of everything that is told.
  UnitKnowledge(const GangScene& scene, PlacementState& state);

  void look_again(uint32_t unit, bool was_busy);
  void failed(uint32_t unit);  // seen, as it had a job
  void told_until_now();

 private:
  const GangScene& scene_;
  PlacementState& state_;
  std::vector<double> counts_, days_h_, counted_at_h_;
  double fleet_per_h_ = 0;
  size_t next_told_ = 0;
};

}  // namespace tierpilot::gang
