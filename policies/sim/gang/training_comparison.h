// Ways to train, as policies of a suite that is small enough to train anew for each row and seed.
#pragma once

#include "policies/sim/gang/ac_training.h"
#include "policies/sim/gang/learned_placers.h"

namespace tierpilot::gang {

struct ComparedTraining {
  std::shared_ptr<const AcNet> simulated;  // what is shipped: by simulation of any clusters
  AcTrainingSettings settings;             // of those that are trained here
  uint32_t workloads = 60;                 // of the very cluster, at other times
  PublishedSettings published;
};

// Where rates differ, at stress: 64 units for `ac`; 16 for the published policy, whose training is
// slow.
GangSuite compared_suite(bool published);

// "ac": `simulated`; "ac-rates" and "ac-histories": the same way but for as long as `settings` say,
// the latter of raw failure histories in place of rates; "ac-recorded": for half as long by
// simulation of what the cluster recorded, its jobs of four workloads and failures of ninety days;
// "ac-online": on the very cluster, workload after workload, charged by the rates that are
// estimated there; "ac-continued": the same, beginning with `simulated`.
const std::vector<std::string>& compared_ac();
// "published-K", with the best of K random placements as what to beat, and as many steps for each
// training as a workload brought; "published-K-all": with all that are kept;
// "published-K-estimated": both makespans simulated under the rates that are estimated.
const std::vector<std::string>& compared_published();

// Also heuristics by their names. `suite` outlives it.
PlacerMaker compared_maker(const GangSuite& suite, ComparedTraining training);

}  // namespace tierpilot::gang
