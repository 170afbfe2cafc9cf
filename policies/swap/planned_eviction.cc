#include "policies/swap/planned_eviction.h"

#include <algorithm>

namespace tierpilot::swap {

PlannedEviction::PlannedEviction(const Graph& graph, const Timetable& timetable, const Plan& plan,
                                 const Link& link, Following following)
    : timetable_(timetable),
      plan_(plan),
      following_(following),
      versions_(graph.storages.size()),
      returns_(graph, timetable, plan, link) {}

void PlannedEviction::note(Machine& machine, StorageId storage) {
  const auto next = timetable_.next_use(storage, now_);
  const auto bytes =
      static_cast<double>(std::max<int64_t>(machine.graph().storages[storage].bytes, 1));
  const auto cost =
      static_cast<double>(machine.has_copy(storage) ? 0 : machine.history().cost_ns(storage));
  const uint32_t version = ++versions_[storage];
  if (next == kNone) {
    candidates_[kUseless].push({cost / bytes, storage, version});
    return;
  }
  switch (returns_.is_held(storage, now_) ? Action::kKeep : plan_.action(storage, now_)) {
    case Action::kSwap:
      if (!machine.has_copy(storage)) {
        if (machine.device().evictable(storage)) machine.swap_out(storage);
        return;
      }
      // Came back early for what is made again: gone at once, it would never be there.
      [[fallthrough]];
    case Action::kRecompute:
      candidates_[kPlanned].push({cost / bytes, storage, version});
      return;
    case Action::kKeep:
      if (following_ == Following::kStrict && !machine.has_copy(storage)) return;
      candidates_[kOther].push({cost / (bytes * (next - now_)), storage, version});
  }
}

bool PlannedEviction::still_valid(const Machine& machine, const Candidate& candidate) const {
  return versions_[candidate.storage] == candidate.version &&
         machine.device().evictable(candidate.storage);
}

StorageId PlannedEviction::pop(const Machine& machine, Rank rank) {
  auto& queue = candidates_[rank];
  while (!queue.empty()) {
    const auto top = queue.top();
    queue.pop();
    if (still_valid(machine, top)) return top.storage;
  }
  return kNone;
}

bool PlannedEviction::make_room(Machine& machine, int64_t bytes) {
  while (!machine.device().fits(bytes)) {
    auto storage = pop(machine, kUseless);
    if (storage == kNone) storage = pop(machine, kPlanned);
    if (storage == kNone && machine.wait()) continue;
    if (storage == kNone) storage = pop(machine, kOther);
    if (storage == kNone) return false;
    if (machine.limits().recompute || timetable_.next_use(storage, now_) == kNone)
      machine.drop(storage);
    else if (machine.limits().link.exists())
      machine.swap_out(storage);
    else
      return false;
  }
  return true;
}

// For a copy back only what is of no more use goes.
bool PlannedEviction::room_for(Machine& machine, int64_t bytes) {
  while (!machine.device().fits(bytes)) {
    const auto storage = pop(machine, kUseless);
    if (storage == kNone) return false;
    machine.drop(storage);
  }
  return true;
}

void PlannedEviction::before(Machine& machine, OperatorId op) {
  now_ = op;
  machine.settle();
  returns_.begin_due(machine, op, [&](int64_t bytes) { return room_for(machine, bytes); });
}

}  // namespace tierpilot::swap
