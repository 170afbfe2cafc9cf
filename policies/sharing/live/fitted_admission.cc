// Which promises `share` makes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policies/sharing/live/fitted_policy.h"
#include "policies/sharing/live/needed_share.h"
#include "policies/sharing/live/neighbours.h"

namespace tierpilot::sharing {
namespace {

// What a unit has for a job with a promise from some time on: those that have ended by then are
// gone, and best-effort jobs give way.
struct Opening {
  double at_s = 0;
  LiveUnit unit;
};

double end_of(const LiveJob& job) {
  return std::max(0.0, job.is_promised() ? job.promise_left_s : job.left_upper_s);
}

std::vector<Opening> openings_of(const LiveUnit& unit) {
  LiveUnit rest = unit;
  std::erase_if(rest.jobs,
                [](const auto& job) { return job.job_class != JobClass::kLatencySensitive; });
  std::stable_sort(rest.jobs.begin(), rest.jobs.end(),
                   [](const auto& a, const auto& b) { return end_of(a) < end_of(b); });
  std::vector<Opening> openings{{0, rest}};
  while (!rest.jobs.empty()) {
    const double at_s = end_of(rest.jobs.front());
    rest.jobs.erase(rest.jobs.begin());
    openings.push_back({at_s, rest});
  }
  return openings;
}

// That those who are there leave, each with what its promise needs beside the others and one more.
uint32_t room_on(const LiveUnit& unit, const std::string& newcomer, const Retained& retained) {
  const Neighbours neighbours(retained, unit);
  uint32_t taken = 0;
  for (const auto& job : unit.jobs)
    taken += needed_milli(job, neighbours.retained(job.model, job.id) *
                                   (retained ? retained(job.model, newcomer) : 1));
  return unit.whole.milli - std::min(unit.whole.milli, taken);
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

// The first opening in which the job would be done in time, beside neighbours that do not slow each
// other too much; else the one in which it is done first.
Plan plan_on(const LiveUnit& unit, const WaitingJob& job, const Predicted& predicted,
             const Retained& retained) {
  Plan soonest;
  for (const auto& opening : openings_of(unit)) {
    const uint32_t room = room_on(opening.unit, job.model, retained);
    const Neighbours neighbours(retained, opening.unit);
    if (room == 0 || !neighbours.bear(job.model, 0)) continue;
    const double kept = neighbours.retained(job.model, job.id);
    const double end_s = opening.at_s + time_with(room, predicted) / (kept * kPromiseMargin);
    if (end_s < soonest.end_s) soonest = {opening.at_s, end_s, std::min(room, predicted.milli)};
    const double left_s = job.promise_left_s - opening.at_s;
    if (end_s <= job.promise_left_s)
      return {
          opening.at_s, end_s,
          needed_milli({predicted.milli, predicted.run_upper_s, predicted.start_s}, left_s, kept)};
  }
  return soonest;
}

struct Choice {
  Plan plan;
  LiveUnit* unit = nullptr;
};

Choice soonest_for(std::vector<LiveNode>& nodes, const WaitingJob& job, const Retained& retained) {
  Choice best;
  for (auto& node : nodes)
    for (auto& unit : node) {
      const auto predicted = job.predicted.find(unit.type);
      if (predicted == job.predicted.end()) continue;
      const auto plan = plan_on(unit, job, predicted->second, retained);
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
    const auto choice = soonest_for(then, other, retained_);
    if (!choice.unit) continue;
    LiveJob placed;
    placed.id = other.id;
    placed.job_class = other.job_class;
    placed.model = other.model;
    placed.need_milli = choice.plan.milli;
    placed.share.milli = choice.plan.milli;
    placed.left_upper_s = choice.plan.end_s;
    placed.promise_left_s = other.promise_left_s;
    choice.unit->jobs.push_back(placed);
  }
  const auto choice = soonest_for(then, job, retained_);
  if (!choice.unit) return {false, 0, "no unit of a type that it could run on"};
  if (choice.plan.end_s <= job.promise_left_s)
    return {true, choice.plan.end_s,
            fmt::format("it can be done after {:.0f} s", choice.plan.end_s)};
  return {false, choice.plan.end_s,
          fmt::format("with 95 % certainty it is done after {:.0f} s, not {:.0f}",
                      choice.plan.end_s, job.promise_left_s)};
}

}  // namespace tierpilot::sharing
