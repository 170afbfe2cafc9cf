#include "policies/sim/sharing/timed_policies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "policies/sharing/placement.h"
#include "policies/sim/sharing/scored_policy.h"
#include "policies/sim/sharing/traced_jobs.h"

namespace tierpilot::sharing {
namespace {

bool is_clairvoyant(std::string_view policy) {
  return policy == kClairvoyant || policy == kAskedAlike;
}

bool is_scored(std::string_view policy) {
  return policy == kPacked || policy == kDescending;
}

Thought thought_of(std::string_view policy, const TimedWorkload& workload) {
  if (policy == kUnaware) return {};
  if (is_clairvoyant(policy) || policy == kForetold)
    return {[&workload](const Sharer& victim, const Sharer& neighbour) {
              const size_t pair =
                  model_number(victim.name) * kModels + model_number(neighbour.name);
              return Kept{.ln = std::log(workload.retained_predicted[pair])};
            },
            nullptr};
  auto learns = std::make_shared<Interference>(core_pair_prior(), published_pair_mean());
  return {[learns](const Sharer& victim, const Sharer& neighbour) {
            return learns->beside(victim, neighbour);
          },
          learns};
}

// What usually comes, as at full load: all that is to come.
std::vector<Request> asked_for(const TimedWorkload& workload) {
  std::vector<Request> requests;
  for (const auto& job : workload.jobs)
    requests.push_back({.units = 1, .share = {.milli = job.asked_milli}, .models = job.types});
  return requests;
}

Result<std::unique_ptr<SharePolicy>> make_timed(std::string_view policy,
                                                const TimedWorkload& workload,
                                                const Retained& retained) {
  if (is_scored(policy)) {
    auto scorer = make_scorer(policy, {asked_for(workload), {}});
    if (!scorer) return tl::unexpected(scorer.error());
    return std::make_unique<ScoredPolicy>(std::move(*scorer), workload.types);
  }
  const bool is_share =
      is_clairvoyant(policy) || policy == kForetold || policy == kUnaware || policy == kOnTrial;
  return make_share_policy(is_share ? "share" : policy, retained);
}

}  // namespace

std::vector<std::string> timed_policies() {
  auto names = share_policies().names();
  for (const auto name :
       {kPacked, kDescending, kOnTrial, kUnaware, kForetold, kAskedAlike, kClairvoyant})
    names.emplace_back(name);
  return names;
}

TimedWorkload workload_for(std::string_view policy, uint64_t seed, TimedSettings settings,
                           const JobSource* source) {
  settings.knows_all = is_clairvoyant(policy);
  settings.asked_alike = policy == kAskedAlike;
  return source ? timed_workload(*source, seed, settings) : generate_timed(seed, settings);
}

Result<TimedRun> run_timed(std::string_view policy, uint64_t seed, const TimedSettings& settings,
                           const TimedRules& given, const JobSource* source) {
  const auto known = timed_policies();
  if (std::find(known.begin(), known.end(), policy) == known.end())
    return fail(ErrorCode::kNotFound, fmt::format("policy '{}' does not exist: there are {}",
                                                  policy, fmt::join(known, ", ")));
  TimedRules rules = given;
  rules.users_ask = policy == "best-fit" || is_scored(policy);
  rules.trials = policy == kOnTrial;
  const auto workload = workload_for(policy, seed, settings, source);
  const auto thought = thought_of(policy, workload);
  auto made = make_timed(policy, workload, thought.retained);
  if (!made) return tl::unexpected(made.error());
  return simulate_timed(workload, **made, rules, thought);
}

}  // namespace tierpilot::sharing
