// Where all ranks of a gang are to run now.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/gangs/gang_policies.h"
#include "model/rank.h"

namespace tierpilot {

struct PlacedRank {
  std::string node;
  RankPlace place;
};

struct GangPlan {
  std::vector<PlacedRank> ranks;  // by rank; empty: there is no room
  std::string reason;             // of the choice, or why there is none
  // The nodes that are up have as much as it needs, as soon as others are done.
  bool could_fit = true;
  std::vector<CandidateRecord> nodes;  // that were looked at
  // Who decided, and why not the policy where it did not; empty: nobody was asked.
  std::optional<Oversight::Turn> turn;
  std::string fallback;
  std::string proposed;  // nodes that the policy wanted, where it was asked and did not get them
  GangDecision beside{};
  int64_t decide_ns = 0;
};

// Of units of all nodes that take the task. The policies are asked only where there is room.
GangPlan plan_gang(const ClusterState& state, GangPolicies& policies, const Task& gang);
// How many ranks of the gang, beside those that run, there is room for now.
uint64_t idle_ranks(const ClusterState& state, const Task& gang);

}  // namespace tierpilot
