#include "policies/swap/published_replay.h"

#include <string_view>
#include <unordered_map>

#include "policies/swap/learning/published_q.h"
#include "policies/swap/machine/step_run.h"
#include "policies/swap/planned_eviction.h"
#include "policies/swap/rival_plans.h"

namespace tierpilot::swap {

Outcome replay_published(const Graph& graph, const Limits& limits, uint64_t seed) {
  const Timetable timetable(graph);
  std::vector<StorageId> storages;
  std::vector<Absence> absences;
  std::vector<uint32_t> kinds;
  std::unordered_map<std::string_view, uint32_t> kind_of;  // by the operator that makes it
  for (StorageId storage = 0; storage < graph.storages.size(); ++storage) {
    const auto absence = long_absence(graph, timetable, storage);
    if (!absence) continue;
    const auto maker = graph.tensors[graph.storages[storage].tensors.front()].maker;
    storages.push_back(storage);
    absences.push_back(*absence);
    const auto next = static_cast<uint32_t>(kind_of.size());
    kinds.push_back(kind_of.emplace(graph.operators[maker].name, next).first->second);
  }
  PublishedQ table(kinds, std::vector<char>(kinds.size(), 1), {.seed = seed});
  auto without = limits;
  without.recompute = false;
  Outcome best;
  for (int round = 0; round < kPublishedRounds; ++round) {
    Plan plan{.absences = std::vector<std::vector<Absence>>(graph.storages.size())};
    for (size_t i = 0; i < storages.size(); ++i)
      if (table.plan()[i]) plan.absences[storages[i]].push_back(absences[i]);
    PlannedEviction manager(graph, timetable, plan, limits.link, Following::kStrict);
    auto outcome = run_step(graph, without, manager);
    // Out of memory is as bad as the replay's limits allow.
    const double time = outcome.done ? outcome.overhead() : limits.thrash_limit;
    const double memory =
        outcome.done && limits.budget_bytes > 0
            ? static_cast<double>(outcome.peak_bytes) / static_cast<double>(limits.budget_bytes)
            : 2;
    table.end_round(time, memory);
    if (!best.done || (outcome.done && outcome.clock_ns < best.clock_ns)) best = std::move(outcome);
  }
  return best;
}

}  // namespace tierpilot::swap
