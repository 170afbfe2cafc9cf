// Which promises `share` makes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policies/sharing/live/fitted_policy.h"
#include "policies/sharing/live/needed_share.h"

namespace tierpilot::sharing {
namespace {

// What a unit has for jobs with promises, by when.
struct Opening {
  double at_s = 0;
  uint32_t milli = 0;
};

// Best-effort jobs give way, so only the others count.
std::vector<Opening> openings_of(const LiveUnit& unit) {
  uint32_t taken = 0;
  std::vector<Opening> ends;
  for (const auto& job : unit.jobs) {
    if (job.job_class != JobClass::kLatencySensitive) continue;
    const uint32_t milli = needed_milli(job, 1);
    const double end_s = job.is_promised() ? job.promise_left_s : job.left_upper_s;
    taken += milli;
    ends.push_back({std::max(0.0, end_s), milli});
  }
  std::stable_sort(ends.begin(), ends.end(),
                   [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
  std::vector<Opening> openings{{0, unit.whole.milli - std::min(unit.whole.milli, taken)}};
  for (const auto& end : ends)
    openings.push_back({end.at_s, std::min(unit.whole.milli, openings.back().milli + end.milli)});
  return openings;
}

// Of its run where it may have so much of the unit.
double time_with(uint32_t milli, const Predicted& predicted) {
  const double rest_s = std::max(0.0, predicted.run_upper_s - predicted.start_s);
  return predicted.start_s / speed_with(milli, kWholeUnit) +
         rest_s / speed_with(milli, predicted.milli);
}

struct Plan {
  double start_s = 0;
  double end_s = kNoPromise;  // with all that it needs, or as much as there is
  uint32_t milli = 0;         // that it takes
};

// The first opening in which the job would be done in time; else the one in which it is done first.
Plan plan_on(const std::vector<Opening>& openings, const Predicted& predicted, double promise_s) {
  Plan soonest;
  for (const auto& opening : openings) {
    if (opening.milli == 0) continue;
    const uint32_t given = std::min(opening.milli, predicted.milli);
    const double end_s = opening.at_s + time_with(opening.milli, predicted) / kPromiseMargin;
    if (end_s < soonest.end_s) soonest = {opening.at_s, end_s, given};
    const double left_s = promise_s - opening.at_s;
    if (end_s <= promise_s)
      return {opening.at_s, end_s,
              needed_milli({predicted.milli, predicted.run_upper_s, predicted.start_s}, left_s, 1)};
  }
  return soonest;
}

struct Choice {
  Plan plan;
  LiveUnit* unit = nullptr;
};

Choice soonest_for(std::vector<LiveNode>& nodes, const WaitingJob& job) {
  Choice best;
  for (auto& node : nodes)
    for (auto& unit : node) {
      const auto predicted = job.predicted.find(unit.type);
      if (predicted == job.predicted.end()) continue;
      const auto plan = plan_on(openings_of(unit), predicted->second, job.promise_left_s);
      if (plan.end_s < best.plan.end_s) best = {plan, &unit};
    }
  return best;
}

}  // namespace

Admission FittedPolicy::admit(const std::vector<LiveNode>& nodes,
                              const std::vector<WaitingJob>& ahead, const WaitingJob& job) {
  if (job.promise_left_s >= kNoPromise) return {};
  for (const auto& [type, predicted] : job.predicted)
    if (predicted.run_upper_s <= 0)
      return {false, 0,
              "its run time on " + type + " is not known, so that nothing can be promised"};
  auto then = nodes;
  for (const auto& other : ahead) {
    if (other.job_class != JobClass::kLatencySensitive) continue;
    const auto choice = soonest_for(then, other);
    if (!choice.unit) continue;
    LiveJob placed;
    placed.job_class = other.job_class;
    placed.need_milli = choice.plan.milli;
    placed.share.milli = choice.plan.milli;
    placed.left_upper_s = choice.plan.end_s;
    placed.promise_left_s = other.promise_left_s;
    choice.unit->jobs.push_back(placed);
  }
  const auto choice = soonest_for(then, job);
  if (!choice.unit) return {false, 0, "no unit of a type that it could run on"};
  if (choice.plan.end_s <= job.promise_left_s)
    return {true, choice.plan.end_s,
            fmt::format("it can be done after {:.0f} s", choice.plan.end_s)};
  return {false, choice.plan.end_s,
          fmt::format("with 95 % certainty it is done after {:.0f} s, not {:.0f}",
                      choice.plan.end_s, job.promise_left_s)};
}

}  // namespace tierpilot::sharing
