// What the dqn is trained on: clusters of 4 to 32 nodes and generated workloads, drawn anew for
// each episode. Evaluations go beyond every range: scans and changes of popularity are never drawn
// here.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "policies/sim/evaluation/suite.h"

namespace tierpilot::sim {

// nodes        4, 8, 16 or 32, alike or in three groups whose speeds and budgets differ by up to 4
// load         0.3 to 0.85
// data         4 to 16 datasets a node, the largest 64 to 512 MiB, popularity 1 / i^(0.3 to 1.2) at
// 8 nodes writes       0 to 30 % of the tasks run time     mean 0.2 to 1 s on a node of 1e9
// operations/s transfers    0.2 to 2 GB/s, links and slow tiers each
EvaluationCell draw_training_cell(SeededRandom& random, uint32_t tasks);

}  // namespace tierpilot::sim
