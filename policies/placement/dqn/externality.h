// What placing a task costs the tasks after it: a longer queue, a link that is taken, data that
// others lose. Nobody can measure it of one task, so it is not learned from outcomes: it is a
// weighted sum of times that the estimate knows, whose weights are searched by simulation
// (policies/sim/evaluation/externality_search.h).
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "policies/placement/dqn/features.h"
#include "policies/scheduling/estimate.h"

namespace tierpilot {

struct ExternalityTerm {
  std::string_view name;
  FeatureMask needs;  // the term is zero unless all these groups are seen
};

// In seconds, after the estimate's parts (wait, serve, evict, run). rho: the cluster's load, q =
// rho / (1 - rho); u: share of the nodes that bring data in, v = u / (1 - u); both at most 0.95.
inline constexpr std::array kExternalityTerms{
    ExternalityTerm{"q wait", groups(FeatureGroup::kLoad)},
    ExternalityTerm{"q busy", groups(FeatureGroup::kLoad)},  // busy = serve + run
    ExternalityTerm{"wait", groups(FeatureGroup::kTime)},
    ExternalityTerm{"serve", groups(FeatureGroup::kTime)},
    ExternalityTerm{"evict", groups(FeatureGroup::kMemory)},
    ExternalityTerm{"fetch", groups(FeatureGroup::kLocality)},  // from other nodes
    ExternalityTerm{"q evict", groups(FeatureGroup::kLoad, FeatureGroup::kMemory)},
    ExternalityTerm{"q transfer", groups(FeatureGroup::kLoad, FeatureGroup::kLocality)},
    ExternalityTerm{"rho faster run", groups(FeatureGroup::kLoad, FeatureGroup::kSpeed)},
    ExternalityTerm{"run load", groups(FeatureGroup::kLoad)},  // of this node, per unit
    ExternalityTerm{"q run", groups(FeatureGroup::kLoad)},
    ExternalityTerm{"overlap", groups(FeatureGroup::kTime)},  // of wait and serve
    // Times by how many fast tiers hold the data already.
    ExternalityTerm{"promotion of nobody's",
                    groups(FeatureGroup::kContext, FeatureGroup::kLocality)},
    ExternalityTerm{"fetch of others'", groups(FeatureGroup::kContext, FeatureGroup::kLocality)},
    ExternalityTerm{"q fetch", groups(FeatureGroup::kLoad, FeatureGroup::kLocality)},
    // Copies elsewhere that a write makes void, by the time to bring one back.
    ExternalityTerm{"void copies", groups(FeatureGroup::kContext, FeatureGroup::kRequest)},
    ExternalityTerm{"serve by budget", groups(FeatureGroup::kMemory)},
    ExternalityTerm{"link backlog", groups(FeatureGroup::kLocality)},
    ExternalityTerm{"evicted for a first copy",
                    groups(FeatureGroup::kContext, FeatureGroup::kMemory)},
    ExternalityTerm{"root q wait", groups(FeatureGroup::kLoad)},
    ExternalityTerm{"v fetch", groups(FeatureGroup::kContext, FeatureGroup::kLocality)},
    ExternalityTerm{"v transfer", groups(FeatureGroup::kContext, FeatureGroup::kLocality)},
    ExternalityTerm{"v evict", groups(FeatureGroup::kContext, FeatureGroup::kMemory)},
    ExternalityTerm{"u fetch", groups(FeatureGroup::kContext, FeatureGroup::kLocality)},
    // Times the backlog of all links over itself and the run.
    ExternalityTerm{"backlogged fetch", groups(FeatureGroup::kContext, FeatureGroup::kLocality)},
    ExternalityTerm{"v evicted brought back",
                    groups(FeatureGroup::kContext, FeatureGroup::kMemory)},
    // Of a full node, for which the task would be kept back.
    ExternalityTerm{"held", groups(FeatureGroup::kLoad)},
    ExternalityTerm{"held wait", groups(FeatureGroup::kLoad)},
    ExternalityTerm{"held run", groups(FeatureGroup::kLoad)},
    ExternalityTerm{"held q run", groups(FeatureGroup::kLoad)},
};
inline constexpr size_t kExternalityCount = kExternalityTerms.size();

// One for each term.
using ExternalityWeights = std::array<double, kExternalityCount>;
inline constexpr ExternalityWeights kNoExternality{};
// Those of the heuristic delay-finish, whose choices they make with nothing else.
ExternalityWeights delay_finish_externality();

class Externality {
 public:
  Externality(const View& view, const NodeRates& typical, FeatureMask mask);

  // Seconds of others' time, of the view's task on `node`, a candidate or full; may be negative.
  double cost_s(const NodeState& node, const FinishEstimate& estimate,
                const ExternalityWeights& weights) const;

 private:
  const View& view_;
  NodeRates typical_;
  FeatureMask mask_;
  double load_ = 0;
  double q_ = 0;
  double fetching_ = 0;  // u
  double v_ = 0;
  double backlog_s_ = 0;  // of a node's link, on average
  double fast_copies_ = 0;
};

}  // namespace tierpilot
