// Which promises `share` makes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "policies/sharing/live/closely.h"
#include "policies/sharing/live/fitted_policy.h"
#include "policies/sharing/live/needed_share.h"
#include "policies/sharing/live/neighbours.h"

namespace tierpilot::sharing {
namespace {

constexpr double kNever = kNoPromise;

// Promises are kept; of others by what is left of them, which may not be known.
double end_of(const LiveJob& job) {
  if (job.is_promised() && job.promise_left_s > 0) return job.promise_left_s;
  return job.left_upper_s > 0 ? job.left_upper_s : kNever;
}

bool ends_before(const LiveJob& a, const LiveJob& b) {
  return end_of(a) < end_of(b);
}

// A unit and who has a claim on it: best-effort jobs give way.
struct Claims {
  size_t node = 0;
  const LiveUnit* unit = nullptr;
  std::vector<LiveJob> jobs;  // by their ends
};

// What promises have of it now.
uint32_t claimed_milli(const LiveUnit& unit) {
  uint32_t milli = 0;
  for (const auto& job : unit.jobs)
    if (job.job_class == JobClass::kLatencySensitive) milli += job.share.milli;
  return milli;
}

// Of each type, of a large cluster those that the job is bound to, and with the fewest claims.
std::vector<Claims> claims_on(const std::vector<LiveNode>& nodes,
                              const std::set<std::string>& types, const WaitingJob& job) {
  std::vector<Claims> all;
  for (const auto& type : types) {
    const auto rank = [&](const LiveUnit& unit,
                          size_t node) -> std::optional<std::pair<bool, uint32_t>> {
      if (unit.type != type) return std::nullopt;
      return std::pair(job.only_node.value_or(node) != node, claimed_milli(unit));
    };
    for (const auto& [n, u] : looked_at_closely(nodes, rank)) {
      const auto& unit = nodes[n][u];
      auto& claims = all.emplace_back(Claims{n, &unit, {}});
      for (const auto& running : unit.jobs)
        if (running.job_class == JobClass::kLatencySensitive) claims.jobs.push_back(running);
      std::stable_sort(claims.jobs.begin(), claims.jobs.end(), ends_before);
    }
  }
  return all;
}

std::set<std::string> types_for(const WaitingJob& job, const std::vector<WaitingJob>& ahead) {
  std::set<std::string> types;
  for (const auto& [type, _] : job.predicted) types.insert(type);
  for (const auto& other : ahead)
    for (const auto& [type, _] : other.predicted) types.insert(type);
  return types;
}

// What they leave, each with what its promise needs beside the others and one more.
uint32_t room_beside(std::span<const LiveJob> jobs, uint32_t whole, const Sharer& newcomer,
                     const Retained& retained) {
  const Neighbours neighbours(retained, jobs);
  uint32_t taken = 0;
  for (const auto& job : jobs)
    taken += needed_milli(job, neighbours.kept(job, newcomer).lower_beside(upper_ratio(job)));
  return whole - std::min(whole, taken);
}

bool has_memory_beside(std::span<const LiveJob> jobs, const LiveUnit& unit, uint64_t bytes) {
  for (const auto& job : jobs) bytes += job.share.memory_bytes;
  return bytes <= unit.whole.memory_bytes;
}

// Of its run where it may have so much of the unit.
double time_with(uint32_t milli, const Predicted& predicted) {
  if (predicted.run_upper_s <= 0) return kNever;
  const double rest_s = std::max(0.0, predicted.run_upper_s - predicted.start_s);
  return predicted.start_s / speed_with(milli, kWholeUnit) +
         rest_s / speed_with(milli, predicted.milli);
}

struct Plan {
  double start_s = 0;
  double end_s = kNoPromise;  // with all that it needs, or as much as there is
  uint32_t milli = 0;         // that it takes; 0: there is no room for it
};

// From now, or from the first end of a claim, on which the job would be done in time, beside
// neighbours that do not slow each other too much; else when it is done first.
Plan plan_on(const Claims& claims, const WaitingJob& job, const Predicted& predicted,
             const Retained& retained) {
  Plan soonest;
  const std::span<const LiveJob> all(claims.jobs);
  for (size_t ended = 0; ended <= all.size(); ++ended) {
    const double at_s = ended == 0 ? 0 : end_of(all[ended - 1]);
    if (at_s >= soonest.end_s) break;  // nothing that begins later ends sooner
    const auto there = all.subspan(ended);
    if (!has_memory_beside(there, *claims.unit, job.memory_bytes_on(predicted))) continue;
    const Neighbours neighbours(retained, there);
    if (!neighbours.bear(job.sharer, {})) continue;
    const uint32_t room = room_beside(there, claims.unit->whole.milli, job.sharer, retained);
    if (room == 0) continue;
    const double kept = neighbours.kept(job.sharer, job.id).lower_beside(upper_ratio(predicted));
    const double end_s = at_s + time_with(room, predicted) / (kept * kPromiseMargin);
    if (end_s <= job.promise_left_s)
      return {at_s, end_s,
              needed_milli({predicted.milli, predicted.run_upper_s, predicted.start_s},
                           job.promise_left_s - at_s, kept)};
    if (end_s < soonest.end_s) soonest = {at_s, end_s, std::min(room, predicted.milli)};
  }
  return soonest;
}

struct Choice {
  Plan plan;
  Claims* claims = nullptr;
};

// With nobody else there.
bool may_run_on(const Claims& claims, const WaitingJob& job, const Predicted& predicted) {
  return job.only_node.value_or(claims.node) == claims.node &&
         job.memory_bytes_on(predicted) <= claims.unit->whole.memory_bytes;
}

Choice soonest_for(std::vector<Claims>& all, const WaitingJob& job, const Retained& retained) {
  Choice best;
  for (auto& claims : all) {
    const auto predicted = job.predicted.find(claims.unit->type);
    if (predicted == job.predicted.end() || !may_run_on(claims, job, predicted->second)) continue;
    const auto plan = plan_on(claims, job, predicted->second, retained);
    if (plan.milli > 0 && (!best.claims || plan.end_s < best.plan.end_s)) best = {plan, &claims};
  }
  return best;
}

// From then on the job has a claim there, too.
void claim(const Choice& choice, const WaitingJob& job) {
  LiveJob placed;
  placed.id = job.id;
  placed.job_class = job.job_class;
  placed.sharer = job.sharer;
  placed.need_milli = choice.plan.milli;
  placed.share = {choice.plan.milli,
                  job.memory_bytes_on(job.predicted.at(choice.claims->unit->type))};
  placed.left_upper_s = choice.plan.end_s;
  placed.promise_left_s = job.promise_left_s;
  auto& jobs = choice.claims->jobs;
  jobs.insert(std::upper_bound(jobs.begin(), jobs.end(), placed, ends_before), placed);
}

}  // namespace

Admission FittedPolicy::admit(const std::vector<LiveNode>& nodes,
                              const std::vector<WaitingJob>& ahead, const WaitingJob& job) {
  if (job.promise_left_s >= kNoPromise) return {};
  for (const auto& [type, predicted] : job.predicted)
    if (predicted.run_upper_s <= 0)
      return {false, 0,
              "its run time on " + type +
                  " is not known, so that nothing can be promised: give an estimate"};
  auto claims = claims_on(nodes, types_for(job, ahead), job);
  for (const auto& other : ahead) {
    if (other.job_class != JobClass::kLatencySensitive) continue;
    if (const auto choice = soonest_for(claims, other, retained_); choice.claims)
      claim(choice, other);
  }
  const auto choice = soonest_for(claims, job, retained_);
  if (!choice.claims) {
    const bool fits = std::any_of(claims.begin(), claims.end(), [&](const Claims& unit) {
      const auto predicted = job.predicted.find(unit.unit->type);
      return predicted != job.predicted.end() && may_run_on(unit, job, predicted->second);
    });
    return {false, 0,
            fits ? "nobody knows how long those take that have the units, or come first: they have "
                   "no estimate, or outlast it"
                 : "there is no unit that it could run on"};
  }
  if (choice.plan.end_s <= job.promise_left_s)
    return {true, choice.plan.end_s,
            fmt::format("it can be done after {:.0f} s", choice.plan.end_s)};
  return {false, choice.plan.end_s,
          fmt::format("with 95 % certainty it is done after {:.0f} s, not {:g}", choice.plan.end_s,
                      job.promise_left_s)};
}

}  // namespace tierpilot::sharing
