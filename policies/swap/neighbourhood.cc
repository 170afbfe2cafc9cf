#include "policies/swap/neighbourhood.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tierpilot::swap {

Neighbourhood::Neighbourhood(const Graph& graph)
    : makers_(graph.storages.size()), users_(graph.storages.size()) {
  for (OperatorId id = 0; id < graph.operators.size(); ++id)
    for (const auto output : graph.operators[id].outputs)
      for (const auto arg : graph.operators[id].args) {
        const auto to = graph.tensors[output].storage, from = graph.tensors[arg].storage;
        if (from == to || graph.storages[from].constant || graph.storages[to].constant) continue;
        makers_[to].push_back({from, id});
        users_[from].push_back({to, id});
      }
  for (auto* side : {&makers_, &users_})
    for (auto& list : *side) {
      std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
        return std::tie(a.storage, a.since) < std::tie(b.storage, b.since);
      });
      const auto same = [](const auto& a, const auto& b) { return a.storage == b.storage; };
      list.erase(std::unique(list.begin(), list.end(), same), list.end());
    }
}

namespace {

// A storage that has not been made yet is not evicted.
bool evicted(const Machine& machine, StorageId storage) {
  return !machine.device().resident(storage) &&
         machine.history().has_run(
             machine.graph().tensors[machine.graph().storages[storage].tensors.front()].maker);
}

}  // namespace

EvictedSums::EvictedSums(const Graph& graph, const Neighbourhood& near, bool descendants)
    : graph_(graph),
      near_(near),
      descendants_(descendants),
      known_(graph.storages.size()),
      seen_(graph.storages.size()) {}

bool EvictedSums::fresh(StorageId storage) {
  return std::exchange(seen_[storage], round_) != round_;
}

int64_t EvictedSums::sum(const Machine& machine, StorageId storage, Side side, double most) {
  ++round_;
  int64_t total = 0;
  walk_.assign(1, storage);
  while (!walk_.empty() && static_cast<double>(total) <= most) {
    const auto at = walk_.back();
    walk_.pop_back();
    for (const auto& [near, since] : (near_.*side)(at)) {
      if (!machine.history().has_run(since) || !evicted(machine, near) || !fresh(near)) continue;
      total += machine.history().cost_ns(near);
      walk_.push_back(near);
    }
  }
  return total;
}

int64_t EvictedSums::around(const Machine& machine, StorageId storage, double most) {
  auto& [sum_ns, whole] = known_[storage];
  if (whole || static_cast<double>(sum_ns) > most) return sum_ns;
  sum_ns = sum(machine, storage, &Neighbourhood::makers, most);
  if (descendants_ && static_cast<double>(sum_ns) <= most)
    sum_ns += sum(machine, storage, &Neighbourhood::users, most - static_cast<double>(sum_ns));
  whole = static_cast<double>(sum_ns) <= most;
  return sum_ns;
}

// It is an ancestor of what its users lead to, and a descendant of what its makers do.
void EvictedSums::changed(const Machine& machine, StorageId storage) {
  known_[storage] = {};
  forget(machine, storage, &Neighbourhood::users);
  if (descendants_) forget(machine, storage, &Neighbourhood::makers);
}

void EvictedSums::forget(const Machine& machine, StorageId storage, Side side) {
  ++round_;
  walk_.assign(1, storage);
  while (!walk_.empty()) {
    const auto at = walk_.back();
    walk_.pop_back();
    for (const auto& [near, since] : (near_.*side)(at)) {
      if (!machine.history().has_run(since) || !fresh(near)) continue;
      known_[near] = {};
      if (evicted(machine, near)) walk_.push_back(near);
    }
  }
}

EvictedClasses::EvictedClasses(const Graph& graph, const Neighbourhood& near)
    : near_(near), node_(graph.storages.size(), kNone), known_(graph.storages.size()) {}

uint32_t EvictedClasses::root(uint32_t node) {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

int64_t EvictedClasses::around(const Machine& machine, StorageId storage) {
  ++round_;
  int64_t total = 0;
  for (const auto* side : {&near_.makers(storage), &near_.users(storage)})
    for (const auto& [near, since] : *side) {
      if (node_[near] == kNone || !machine.history().has_run(since)) continue;
      const auto top = root(node_[near]);
      if (std::exchange(seen_[top], round_) != round_) total += cost_[top];
    }
  known_[storage] = {total, dropped_ns_};
  return total;
}

void EvictedClasses::left(const Machine& machine, StorageId storage) {
  const auto mine = static_cast<uint32_t>(parent_.size());
  node_[storage] = mine;
  parent_.push_back(mine);
  cost_.push_back(machine.history().cost_ns(storage));
  seen_.push_back(0);
  for (const auto* side : {&near_.makers(storage), &near_.users(storage)})
    for (const auto& [near, since] : *side) {
      if (node_[near] == kNone || !machine.history().has_run(since)) continue;
      const auto top = root(node_[near]), own = root(mine);
      if (top == own) continue;
      parent_[own] = top;
      cost_[top] += cost_[own];
    }
}

void EvictedClasses::arrived(const Machine& machine, StorageId storage) {
  if (node_[storage] == kNone) return;
  cost_[root(node_[storage])] -= machine.history().cost_ns(storage);
  node_[storage] = kNone;
  dropped_ns_ += machine.history().cost_ns(storage);
  // Whoever stood beside it may stand beside its class no more.
  for (const auto* side : {&near_.makers(storage), &near_.users(storage)})
    for (const auto& [near, _] : *side) known_[near] = {};
}

}  // namespace tierpilot::swap
