// What the dqn sees: one token per candidate node, with the request, the node, the link to it and
// what it already holds. Nodes have no identity, so any number of them in any order will do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "policies/interface/values.h"
#include "policies/placement/dqn/externality.h"
#include "policies/placement/dqn/features.h"

namespace tierpilot {

struct FeatureInfo {
  std::string_view name;
  FeatureGroup group;
};

// Every feature is finite and within [-4, 4]; times enter as log2(1 + t / scale) / 4, ratios of
// rates as log2 / 4, sizes and operations as in ObservationLayout.
inline constexpr std::array kTokenFeatures{
    FeatureInfo{"wait", FeatureGroup::kTime},
    FeatureInfo{"serve", FeatureGroup::kTime},
    FeatureInfo{"evict", FeatureGroup::kTime},
    FeatureInfo{"run", FeatureGroup::kTime},
    FeatureInfo{"finish_above_best", FeatureGroup::kTime},
    FeatureInfo{"assigned_per_unit", FeatureGroup::kLoad},
    FeatureInfo{"running_per_unit", FeatureGroup::kLoad},
    FeatureInfo{"units", FeatureGroup::kLoad},
    FeatureInfo{"free_fast_share", FeatureGroup::kMemory},
    FeatureInfo{"data_per_budget", FeatureGroup::kMemory},
    FeatureInfo{"evicted_share", FeatureGroup::kMemory},
    FeatureInfo{"held_fast_share", FeatureGroup::kLocality},
    FeatureInfo{"held_slow_share", FeatureGroup::kLocality},
    FeatureInfo{"fetched_share", FeatureGroup::kLocality},
    FeatureInfo{"link_backlog", FeatureGroup::kLocality},
    FeatureInfo{"operations_rate", FeatureGroup::kSpeed},
    FeatureInfo{"fast_rate", FeatureGroup::kSpeed},
    FeatureInfo{"promote_rate", FeatureGroup::kSpeed},
    FeatureInfo{"evict_rate", FeatureGroup::kSpeed},
    FeatureInfo{"fetch_rate", FeatureGroup::kSpeed},
    FeatureInfo{"free_gpu_share", FeatureGroup::kGpu},
    FeatureInfo{"wanted_gpu_share", FeatureGroup::kGpu},
    FeatureInfo{"writes", FeatureGroup::kRequest},
    FeatureInfo{"data_pages", FeatureGroup::kRequest},
    FeatureInfo{"operations", FeatureGroup::kRequest},
    FeatureInfo{"task_units", FeatureGroup::kRequest},
    FeatureInfo{"fetch_to_run", FeatureGroup::kRequest},
    FeatureInfo{"mean_load", FeatureGroup::kContext},
    FeatureInfo{"idle_share", FeatureGroup::kContext},
    FeatureInfo{"candidate_share", FeatureGroup::kContext},
    FeatureInfo{"mean_free_fast", FeatureGroup::kContext},
    FeatureInfo{"fast_copies", FeatureGroup::kContext},
    FeatureInfo{"slow_copies", FeatureGroup::kContext},
};
inline constexpr size_t kTokenSize = kTokenFeatures.size();

struct TokenSet {
  std::vector<float> features;  // count() times kTokenSize
  // Estimated time to the finish over scale_s, negated, in [-kWorst, -1] or below.
  std::vector<float> prior;
  // What it costs others over scale_s, negated.
  std::vector<float> others;
  std::vector<uint32_t> nodes;  // index into View::nodes
  double scale_s = 1;           // the best candidate's estimated time to the finish

  size_t count() const { return nodes.size(); }
  void clear() {
    features.clear(), prior.clear(), others.clear(), nodes.clear();
    scale_s = 1;
  }
  bool operator==(const TokenSet&) const = default;
};

// Costs beyond so many times the best estimate are cut: a rare disaster must not outweigh all else.
inline constexpr float kWorst = 16;

uint64_t hash_of(const TokenSet& tokens);

// Fills `out`, reusing its memory. No candidate, no tokens; of more than `most` those with the best
// sum of prior and others, and that of the node `keep`, if it is a candidate.
void make_tokens(const View& view, FeatureMask mask, const ExternalityWeights& others, size_t most,
                 TokenSet& out, size_t keep = kNoNode);

}  // namespace tierpilot
