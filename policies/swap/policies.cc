#include "policies/swap/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "policies/swap/belady.h"
#include "policies/swap/bound/bound.h"
#include "policies/swap/capuchin.h"
#include "policies/swap/machine/step_run.h"
#include "policies/swap/planned_eviction.h"
#include "policies/swap/planner.h"
#include "policies/swap/published_replay.h"
#include "policies/swap/rival_plans.h"
#include "policies/swap/scores.h"

namespace tierpilot::swap {
namespace {

constexpr int kRandomRuns = 10;

Outcome replay_score(const Graph& graph, const Score& score, const Limits& limits, uint64_t seed) {
  ScoredEviction manager(graph, score, seed);
  return run_step(graph, limits, manager);
}

// Of all that it has.
Outcome mean_of(const std::vector<Outcome>& outcomes) {
  auto mean = outcomes.front();
  const auto average = [&](auto figure) {
    int64_t sum = 0;
    for (const auto& outcome : outcomes) sum += figure(outcome);
    return sum / static_cast<int64_t>(outcomes.size());
  };
  mean.clock_ns = average([](const Outcome& outcome) { return outcome.clock_ns; });
  mean.peak_bytes = average([](const Outcome& outcome) { return outcome.peak_bytes; });
  for (const auto count : {&Counts::evictions, &Counts::recomputations, &Counts::recomputed_ns,
                           &Counts::swaps_out, &Counts::swaps_in, &Counts::bytes_out,
                           &Counts::bytes_in, &Counts::stalls, &Counts::stall_ns})
    mean.counts.*count = average([&](const Outcome& outcome) { return outcome.counts.*count; });
  return mean;
}

// The mean of the draws that got through; failed when none did.
Replayed replay_random(const Graph& graph, const PolicyInfo& info, const ReplaySettings& settings) {
  std::vector<Outcome> done;
  Outcome failed;
  for (int run = 0; run < kRandomRuns; ++run) {
    auto outcome = replay_score(graph, *score_by_name(info.name), settings.limits,
                                derived_seed(settings.seed + run, "h_rand"));
    (outcome.done ? done.emplace_back() : failed) = std::move(outcome);
  }
  return {.policy = info,
          .outcome = done.empty() ? failed : mean_of(done),
          .runs = static_cast<int>(done.size())};
}

Replayed replay_planned(const Graph& graph, const PolicyInfo& info, size_t work,
                        const ReplaySettings& settings) {
  auto planned = plan_step(graph, {.limits = settings.limits, .work = work, .seed = settings.seed});
  if (!planned.outcome.done)
    if (auto reason = impossible(graph, settings.limits)) planned.outcome.reason = *reason;
  return {.policy = info,
          .outcome = std::move(planned.outcome),
          .runs = planned.trials,
          .origin = std::move(planned.origin)};
}

Outcome not_applicable(const Graph& graph, const Error& error) {
  Outcome outcome{.reason = error.message};
  for (const auto& op : graph.operators) outcome.base_time_ns += op.time_ns;
  return outcome;
}

Outcome follow(const Graph& graph, const Timetable& timetable, const Plan& plan,
               const Limits& limits) {
  PlannedEviction manager(graph, timetable, plan, limits.link, Following::kStrict);
  return run_step(graph, limits, manager);
}

Outcome replay_capuchin(const Graph& graph, const Limits& limits) {
  const Timetable timetable(graph);
  Outcome best;
  for (const auto& plan : capuchin_plans(graph, timetable, limits)) {
    auto outcome = follow(graph, timetable, plan, limits);
    if (!best.done || (outcome.done && outcome.clock_ns < best.clock_ns)) best = std::move(outcome);
  }
  return best;
}

Outcome replay_rival(const Graph& graph, std::string_view policy, const ReplaySettings& settings) {
  const auto& limits = settings.limits;
  if (policy == "capuchin") return replay_capuchin(graph, limits);
  Timetable timetable(graph);
  if (policy == "belady") {
    BeladyEviction manager(timetable);
    return run_step(graph, limits, manager);
  }
  if (policy == "q-published") {
    const auto status = need_link(policy, limits);
    return status ? replay_published(graph, limits, settings.seed)
                  : not_applicable(graph, status.error());
  }
  const auto plan = rival_plan(policy, graph, timetable, limits);
  return plan ? follow(graph, timetable, *plan, limits) : not_applicable(graph, plan.error());
}

bool is_rival(std::string_view policy) {
  static constexpr std::array kRivals{
      std::string_view("swap-all"),   std::string_view("vdnn"),     std::string_view("vdnn-all"),
      std::string_view("checkpoint"), std::string_view("capuchin"), std::string_view("belady"),
      std::string_view("q-published")};
  return std::find(kRivals.begin(), kRivals.end(), policy) != kRivals.end();
}

}  // namespace

const std::vector<PolicyInfo>& policy_infos() {
  static const std::vector<PolicyInfo> infos{
      {"swap", "planner", "keeps, recomputes and, over a link, swaps by a plan of the whole step"},
      {"swap-quick", "planner", "the same, from few trials"},
      {"swap-online", "online",
       "h_DTR_eq that lets go first of what only recomputing brought back"},
      {"h_DTR", "online", "cost of itself and its evicted neighbourhood, by size and staleness"},
      {"h_DTR_eq", "online", "the same with classes of neighbours that are never split"},
      {"h_DTR_local", "online", "own cost, by size and staleness"},
      {"h_LRU", "online", "what was used least recently"},
      {"h_size", "online", "the largest"},
      {"h_MSPS", "online", "memory saved per second of recomputing"},
      {"h_rand", "online", "any; the mean of 10 runs"},
      {"swap-all", "planner", "swaps all that the backward pass needs"},
      {"vdnn", "planner", "swaps the inputs of convolutions"},
      {"vdnn-all", "planner", "swaps the inputs of all operators"},
      {"capuchin", "planner",
       "swaps by free time between measured accesses, recomputes by memory saved per second"},
      {"checkpoint", "planner", "recomputes segments of square-root length"},
      {"belady", "planner", "what is needed again last leaves first"},
      {"q-published", "planner", "swaps by the published Q table: the best of 200 rounds"},
      {"bound", "bound", "what none can be better than; it may be out of reach"},
  };
  return infos;
}

Result<Replayed> replay(const Graph& graph, std::string_view policy,
                        const ReplaySettings& settings) {
  for (const auto& info : policy_infos()) {
    if (info.name != policy) continue;
    if (policy == "swap") return replay_planned(graph, info, kThoroughWork, settings);
    if (policy == "swap-quick") return replay_planned(graph, info, kQuickWork, settings);
    if (is_rival(policy))
      return Replayed{.policy = info,
                      .outcome = replay_rival(graph, policy, settings),
                      .runs = policy == "q-published" ? kPublishedRounds : 1};
    if (policy == "bound")
      return Replayed{.policy = info, .outcome = bound(graph, settings.limits), .runs = 0};
    if (policy == "h_rand") return replay_random(graph, info, settings);
    return Replayed{
        .policy = info,
        .outcome = replay_score(graph, *score_by_name(policy), settings.limits, settings.seed)};
  }
  std::string names;
  for (const auto& info : policy_infos()) names += fmt::format(" {}", info.name);
  return fail(ErrorCode::kNotFound,
              fmt::format("policy '{}' is not known; there are{}", policy, names));
}

}  // namespace tierpilot::swap
