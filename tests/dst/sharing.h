// What nodes share in a run, and what jobs want of it: drawn from the seed.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/core/nodes/node_record.h"
#include "tests/dst/plan.h"

namespace tierpilot::dst {

using SharedUnits = std::vector<NodeFacts::SharedUnit>;

// Of each of which several tasks may have parts. In some runs there are GPUs among them, and nodes
// differ; else each node has two cores.
SharedUnits shared_units_of(uint64_t seed, int node, const Kinds& included);
bool shares(uint64_t seed, const Kinds& included);
bool shares_gpus(uint64_t seed, const Kinds& included);
// In some of these runs nothing fails, and more is promised: what others excuse is judged there.
bool is_calm(uint64_t seed, const Kinds& included);
// What users say of run times is no less than they are, and no promise fails for it.
bool are_estimates_right(uint64_t seed);

// In some runs most tasks have shares, and there are too few of these; some have a promise, or one
// on trial.
void make_shares(uint64_t seed, uint64_t number, const Kinds& included,
                 std::vector<TaskSpec>& tasks);
// As long as it runs now.
void estimate(uint64_t seed, TaskSpec& task);

}  // namespace tierpilot::dst
