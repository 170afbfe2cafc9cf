#include "policies/swap/trials.h"

#include <algorithm>

#include "policies/swap/machine/step_run.h"
#include "policies/swap/recording.h"

namespace tierpilot::swap {

namespace {
constexpr size_t kLate = 40;      // changes ago
constexpr double kReturn = 0.01;  // of the changes: the walk goes on from the best

// How far the program came.
int64_t ran_ns(const Outcome& outcome) {
  return outcome.clock_ns - outcome.counts.recomputed_ns - outcome.counts.stall_ns;
}
}  // namespace

bool better(const Outcome& a, const Outcome& b) {
  if (a.done != b.done) return a.done;
  return a.done ? a.clock_ns < b.clock_ns : ran_ns(a) > ran_ns(b);
}

bool Trials::attempt(Manager& manager, const Timetable& timetable, std::string_view origin,
                     Outcome* seen, double patience) {
  Recording recording(graph_, manager);
  auto limits = limits_;
  if (best_.outcome.done) {
    const auto base_ns = best_.outcome.base_time_ns;
    const auto over_ns = static_cast<double>(best_.outcome.clock_ns - 1 - base_ns);
    limits.give_up_ns = 1 + base_ns + static_cast<int64_t>(patience * over_ns);
  }
  const auto outcome = run_step(graph_, limits, recording);
  if (seen) *seen = outcome;
  if (++done_ > 1 && !better(outcome, best_.outcome)) return false;
  best_ = {recording.plan(), timetable, outcome};
  if (!origin.empty()) origin_ = std::string(origin);
  return true;
}

bool Trials::mend(const Plan& plan, const Timetable& timetable, std::string_view origin) {
  PlannedEviction manager(graph_, timetable, plan, limits_.link);
  return attempt(manager, timetable, origin);
}

void Trials::follow(const Plan& plan, const Timetable& timetable, std::string_view origin) {
  for (const auto following : {Following::kStrict, Following::kMending}) {
    PlannedEviction manager(graph_, timetable, plan, limits_.link, following);
    attempt(manager, timetable, origin);
  }
}

void Trials::adopt(const Trials& other) {
  done_ += other.done_;
  if (!better(other.best_.outcome, best_.outcome)) return;
  best_ = other.best_;
  origin_ = other.origin_;
}

void Trials::change(const Plan& plan, const Timetable& timetable, std::string_view origin) {
  for (const auto following : {Following::kMending, Following::kStrict}) {
    PlannedEviction manager(graph_, timetable, plan, limits_.link, following);
    attempt(manager, timetable, origin);
  }
}

void Trials::begin_walk() {
  walk_ = best_;
  late_ns_.assign(kLate, best_.outcome.clock_ns);
}

void Trials::go(const Plan& plan, const Timetable& timetable) {
  if (!walking()) return change(plan, timetable);
  auto& late_ns = late_ns_[steps_++ % kLate];
  for (const auto following : {Following::kMending, Following::kStrict}) {
    PlannedEviction manager(graph_, timetable, plan, limits_.link, following);
    Recording recording(graph_, manager);
    auto limits = limits_;
    if (walk_.outcome.done) limits.give_up_ns = std::max(late_ns, walk_.outcome.clock_ns) + 1;
    const auto outcome = run_step(graph_, limits, recording);
    ++done_;
    if (!outcome.done) continue;
    walk_ = {recording.plan(), timetable, outcome};
    if (better(outcome, best_.outcome)) best_ = walk_;
  }
  if (better(best_.outcome, walk_.outcome) && random_.chance(kReturn)) walk_ = best_;
  late_ns = walk_.outcome.clock_ns;
}

}  // namespace tierpilot::swap
