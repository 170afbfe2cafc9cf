// Plans from the point of a step where most has to be away: what is cheapest to make again after
// it is dropped before it, and of the rest the link carries what leaves first.
#pragma once

#include <functional>
#include <span>

#include "policies/swap/bound/peak.h"
#include "policies/swap/plan.h"

namespace tierpilot::swap {

// Of the room for what may be away: how much the plan leaves free, and how much of what the link
// can carry it counts on.
struct PeakShares {
  double slack = 0, carried = 1;
};

// What a plan was made with.
struct PeakChoice {
  double price = 0;  // ns a byte
  double slack = 0;
};

// Called with each plan and the uses that it counts on.
using TakePlan = std::function<void(const PeakChoice&, const Plan&, const Timetable&)>;
// There are factors on the times of operators.
void peak_plans(const Graph& graph, const Timetable& timetable, const Limits& limits, Position at,
                std::span<const float> factors, std::span<const PeakShares> shares,
                const TakePlan& take);
// One.
void peak_plan(const Graph& graph, const Timetable& timetable, const Limits& limits, Position at,
               const PeakChoice& choice, std::span<const float> factors, const TakePlan& take);

}  // namespace tierpilot::swap
