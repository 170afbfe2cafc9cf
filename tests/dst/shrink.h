// The shortest history that still shows what a longer one did.
#pragma once

#include <functional>

#include "tests/dst/plan.h"

namespace tierpilot::dst {

// Leaves out whatever can be left out while `fails` still holds: halves first, then single actions
// (Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002). At most
// `most_runs` are tried.
Plan shrink(Plan plan, const std::function<bool(const Plan&)>& fails, int most_runs);

}  // namespace tierpilot::dst
