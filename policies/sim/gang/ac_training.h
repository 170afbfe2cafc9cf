// Training of `ac` by simulation: clipped policy updates on its own decisions (Schulman et al.,
// "Proximal Policy Optimization Algorithms", 2017), with advantages over a critic that look some
// hours ahead (Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage
// Estimation", ICLR 2016).
#pragma once

#include <functional>

#include "policies/gang/learned/ac_net.h"
#include "policies/sim/gang/gang_simulation.h"

namespace tierpilot::gang {

struct AcTrainingSettings {
  uint32_t rounds = 150;
  uint32_t scenes = 24;  // of each round
  uint32_t passes = 3;   // over a round's decisions
  uint32_t batch = 256;
  float rate = 1e-3F;
  float critic_rate = 3e-3F;
  float clip = 0.2F;
  float entropy = 3e-3F;
  double horizon_h = 24;   // later decisions count e times less after this time
  double trace = 0.9;      // lambda of the advantages
  double own_hours = 0.3;  // of a job's own delay, beside the unit hours that it takes from all
  uint64_t seed = 1;
  // Decisions are charged by estimated rates in place of the true ones, as on a real cluster.
  bool charges_estimates = false;
};

struct AcRound {
  uint32_t number = 0;
  double cost = 0;     // mean of a decision
  double entropy = 0;  // of a decision, nats
  double changed = 0;  // decisions in which not the heuristic's candidate is the likeliest
};

// A scene for each seed. What it returns is the same for the same settings and scenes.
AcNet train_ac(const AcTrainingSettings& settings,
               const std::function<GangScene(uint64_t seed)>& scene_of,
               const std::function<void(const AcRound&)>& progress);
// The same from a net that may have learned before.
AcNet train_ac_on(AcNet net, const AcTrainingSettings& settings,
                  const std::function<GangScene(uint64_t seed)>& scene_of,
                  const std::function<void(const AcRound&)>& progress);

// What placing the job there is expected to cost at the true rates: unit hours that are not work
// (data to be fetched, checkpoints, slow links, the work lost, the restart, the unit under repair),
// up to the end of the run.
struct RunCost {
  double unit_h = 0;
  double hours = 0;  // by which the job ends later
};
RunCost expected_cost_at(const PlacementState& state, const Job& job, const Units& units,
                         const std::function<double(uint32_t unit)>& per_h);

}  // namespace tierpilot::gang
