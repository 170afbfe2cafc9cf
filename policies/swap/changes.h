// Changes of a plan by chance, for searches around it.
#pragma once

#include "base/random.h"
#include "policies/swap/plan.h"

namespace tierpilot::swap {

// Other ways for what a few operators made, each as a whole: it is run again unless all comes back.
// With `may_stay` it may also stay. False: nothing is away.
bool change_ways(const Graph& graph, SeededRandom& random, bool may_stay, Plan& plan,
                 Timetable& timetable);

// A few stay, and a few leave instead.
void change_absences(const Graph& graph, const Timetable& timetable, SeededRandom& random,
                     Plan& plan);

}  // namespace tierpilot::swap
