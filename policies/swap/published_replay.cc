#include "policies/swap/published_replay.h"

#include <string_view>
#include <unordered_map>
#include <utility>

#include "policies/swap/machine/step_run.h"
#include "policies/swap/planned_eviction.h"
#include "policies/swap/rival_plans.h"

namespace tierpilot::swap {

PublishedReplay::PublishedReplay(const Graph& graph, const Limits& limits, uint64_t seed,
                                 std::vector<char> plan)
    : graph_(graph), timetable_(graph), limits_(limits) {
  limits_.recompute = false;
  std::vector<uint32_t> kinds;
  std::unordered_map<std::string_view, uint32_t> kind_of;  // by the operator that makes it
  for (StorageId storage = 0; storage < graph.storages.size(); ++storage) {
    const auto absence = long_absence(graph, timetable_, storage);
    if (!absence) continue;
    const auto maker = graph.tensors[graph.storages[storage].tensors.front()].maker;
    storages_.push_back(storage);
    absences_.push_back(*absence);
    const auto next = static_cast<uint32_t>(kind_of.size());
    kinds.push_back(kind_of.emplace(graph.operators[maker].name, next).first->second);
  }
  if (plan.empty()) plan.assign(kinds.size(), 1);
  table_.emplace(kinds, std::move(plan), PublishedSettings{.seed = seed});
}

Outcome PublishedReplay::round() {
  Plan followed{.absences = std::vector<std::vector<Absence>>(graph_.storages.size())};
  for (size_t i = 0; i < storages_.size(); ++i)
    if (plan()[i]) followed.absences[storages_[i]].push_back(absences_[i]);
  PlannedEviction manager(graph_, timetable_, followed, limits_.link, Following::kStrict);
  auto outcome = run_step(graph_, limits_, manager);
  // Out of memory is as bad as the replay's limits allow.
  const double time = outcome.done ? outcome.overhead() : limits_.thrash_limit;
  const double memory =
      outcome.done && limits_.budget_bytes > 0
          ? static_cast<double>(outcome.peak_bytes) / static_cast<double>(limits_.budget_bytes)
          : 2;
  table_->end_round(time, memory);
  return outcome;
}

Outcome replay_published(const Graph& graph, const Limits& limits, uint64_t seed) {
  PublishedReplay replay(graph, limits, seed);
  Outcome best;
  for (int round = 0; round < kPublishedRounds; ++round) {
    auto outcome = replay.round();
    if (!best.done || (outcome.done && outcome.clock_ns < best.clock_ns)) best = std::move(outcome);
  }
  return best;
}

}  // namespace tierpilot::swap
