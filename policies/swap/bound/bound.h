// What no plan can be better than: from what has to be away at single points of the step.
//
// While an operator runs for the first time, what is alive and over the budget is away. Of it, the
// link can have carried out no more than in the time before, and can bring back no more than in the
// time after; the rest is made again afterwards. At each point that costs at least what the
// operators do that made it, cheapest by byte first and fractions of them too; at the point where
// that is the most, all that recomputing needs is counted, too (peak.h). It is the least for every
// policy that keeps to the rules of replays. It leaves out that recomputing needs room, when copies
// may begin and have to end, that operators come whole, and that points far apart may each cost
// something: so it may be out of reach.
#pragma once

#include <optional>
#include <string>

#include "policies/swap/graph.h"
#include "policies/swap/machine/limits.h"
#include "policies/swap/machine/outcome.h"
#include "policies/swap/timetable.h"

namespace tierpilot::swap {

// Not done where some operator's arguments, outputs and the constants are over the budget by
// themselves: nothing can get through.
Outcome bound(const Graph& graph, const Limits& limits);

// Why no policy can get through, with the bytes that are needed; nothing where the room suffices
// for each operator by itself.
std::optional<std::string> impossible(const Graph& graph, const Limits& limits);

// The point of the step that costs most by itself, by the operators that are cheapest by byte;
// kNone where the step fits.
Position tightest(const Graph& graph, const Timetable& timetable, const Limits& limits);

}  // namespace tierpilot::swap
