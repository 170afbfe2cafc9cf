#include "policies/swap/changes.h"

#include <algorithm>

#include "policies/swap/link/link_use.h"

namespace tierpilot::swap {
namespace {

constexpr Position kShortGap = 8;  // operators
constexpr double kStays = 0.3;

OperatorId maker(const Graph& graph, StorageId storage) {
  return graph.tensors[graph.storages[storage].tensors.front()].maker;
}

void add_absence(const Graph& graph, const Timetable& timetable, Plan& plan, StorageId storage) {
  const auto& uses = timetable.uses(storage);
  if (graph.storages[storage].constant) return;
  for (size_t i = 1; i < uses.size(); ++i)
    if (uses[i] - uses[i - 1] > kShortGap)
      plan.absences[storage].push_back({uses[i - 1], uses[i], Action::kRecompute});
}

}  // namespace

bool change_ways(const Graph& graph, SeededRandom& random, bool may_stay, Plan& plan,
                 Timetable& timetable) {
  std::vector<OperatorId> makers;
  for (StorageId storage = 0; storage < graph.storages.size(); ++storage)
    if (!plan.absences[storage].empty() &&
        (makers.empty() || makers.back() != maker(graph, storage)))
      makers.push_back(maker(graph, storage));
  if (makers.empty()) return false;
  std::vector<char> drawn(graph.operators.size());
  do drawn[makers[random.below(makers.size())]] = true;
  while (random.chance(0.5));
  const bool stays = may_stay && random.chance(kStays);
  for (StorageId storage = 0; storage < graph.storages.size(); ++storage) {
    auto& list = plan.absences[storage];
    if (list.empty() || !drawn[maker(graph, storage)]) continue;
    if (stays)
      list.clear();
    else
      for (auto& absence : list) change_way(storage, absence, timetable);
  }
  return true;
}

void change_absences(const Graph& graph, const Timetable& timetable, SeededRandom& random,
                     Plan& plan) {
  const double share = random.log_uniform(0.002, 0.15);
  for (StorageId storage = 0; storage < graph.storages.size(); ++storage) {
    auto& list = plan.absences[storage];
    const auto stays = [&](const Absence&) { return random.chance(share); };
    list.erase(std::remove_if(list.begin(), list.end(), stays), list.end());
    if (list.empty() && random.chance(share * 0.3)) add_absence(graph, timetable, plan, storage);
  }
}

}  // namespace tierpilot::swap
