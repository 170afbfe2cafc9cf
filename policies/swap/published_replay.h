// The published Q table on a step that is replayed again and again: each replay is a round.
#pragma once

#include "policies/swap/graph.h"
#include "policies/swap/machine/limits.h"
#include "policies/swap/machine/outcome.h"

namespace tierpilot::swap {

inline constexpr int kPublishedRounds = 200;

// The best round that got through; the last one when none did. The first plan lets all leave. A
// replayed step is the same in each round, so that training before on a part of the data
// (the publication's pre-training) is the same as more rounds.
Outcome replay_published(const Graph& graph, const Limits& limits, uint64_t seed);

}  // namespace tierpilot::swap
