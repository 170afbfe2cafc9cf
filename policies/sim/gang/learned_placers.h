// The policies of a suite by name: heuristics, and those that learned.
#pragma once

#include "policies/gang/learned/ac_net.h"
#include "policies/sim/gang/gang_history.h"
#include "policies/sim/gang/published_training.h"

namespace tierpilot::gang {

inline constexpr const char* kAc = "ac";
inline constexpr const char* kAcPublished = "ac-published";
bool learns(const std::string& policy);

// A cluster, jobs and costs to learn from; none of them is in a suite. Half of the jobs come from
// `trace`, unless it is empty.
GangScene training_scene(uint64_t seed, const std::vector<Job>& trace);
// The same with the jobs of a history, and its failures where it has some.
GangScene recorded_training_scene(uint64_t seed, const GangHistory& history);

// `net` for ac. The published policy, whose networks fit one cluster, first learns on the very
// cluster, at other times: so many workloads.
PlacerMaker placer_maker(const GangSuite& suite, std::shared_ptr<const AcNet> net,
                         PublishedSettings published, uint32_t workloads);

}  // namespace tierpilot::gang
