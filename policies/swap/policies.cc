#include "policies/swap/policies.h"

#include <fmt/format.h>

#include "policies/swap/planner.h"
#include "policies/swap/scores.h"

namespace tierpilot::swap {
namespace {

constexpr int kRandomRuns = 10;

Outcome replay_score(const Graph& graph, const Score& score, const Limits& limits, uint64_t seed) {
  ScoredEviction manager(graph, score, seed);
  return Machine(graph, limits, manager).run();
}

// The mean of the draws that got through; failed when none did.
Replayed replay_random(const Graph& graph, const PolicyInfo& info, const ReplaySettings& settings) {
  Replayed result{.policy = info, .runs = 0};
  int64_t clock_ns = 0;
  for (int run = 0; run < kRandomRuns; ++run) {
    auto outcome = replay_score(graph, *score_by_name(info.name), settings.limits,
                                derived_seed(settings.seed + run, "h_rand"));
    if (!outcome.done && result.runs > 0) continue;
    result.outcome = outcome;
    if (!outcome.done) continue;
    ++result.runs;
    clock_ns += outcome.clock_ns;
  }
  if (result.runs > 0) result.outcome.clock_ns = clock_ns / result.runs;
  return result;
}

Replayed replay_planned(const Graph& graph, const PolicyInfo& info, size_t work,
                        const ReplaySettings& settings) {
  auto planned = plan_step(graph, {.limits = settings.limits, .work = work, .seed = settings.seed});
  return {.policy = info,
          .outcome = std::move(planned.outcome),
          .runs = planned.trials,
          .origin = std::move(planned.origin)};
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
  };
  return infos;
}

Result<Replayed> replay(const Graph& graph, std::string_view policy,
                        const ReplaySettings& settings) {
  for (const auto& info : policy_infos()) {
    if (info.name != policy) continue;
    if (policy == "swap") return replay_planned(graph, info, kThoroughWork, settings);
    if (policy == "swap-quick") return replay_planned(graph, info, kQuickWork, settings);
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
