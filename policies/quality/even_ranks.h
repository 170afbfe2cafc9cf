// Ranks of one job wait for each other in every iteration: what one of them has above the others
// brings nothing. Pure.
#pragma once

#include <span>
#include <vector>

#include "policies/quality/allocator.h"

namespace tierpilot::quality {

// What an allocator gave on one node. A job with ranks on several nodes has the same `id` in each.
struct NodeShares {
  std::vector<JobState> jobs;
  std::vector<double> given;  // cores, in the order of `jobs`
};

// Each rank gets what the one with the least has, though nobody less than its min_cores; what that
// frees is shared fairly among the others of its node.
void even_out(std::span<NodeShares> nodes);

}  // namespace tierpilot::quality
