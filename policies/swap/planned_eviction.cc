#include "policies/swap/planned_eviction.h"

#include <algorithm>

namespace tierpilot::swap {

namespace {
// How many operators a copy back has to leave room for.
constexpr Position kHorizon = 4;
}  // namespace

PlannedEviction::PlannedEviction(const Graph& graph, const Timetable& timetable, const Plan& plan,
                                 const Link& link, Following following)
    : timetable_(timetable),
      plan_(plan),
      following_(following),
      versions_(graph.storages.size()),
      held_(graph.storages.size()),
      needs_(timetable.end() + 1) {
  for (OperatorId op = 0; op < graph.operators.size(); ++op)
    for (const auto output : graph.operators[op].outputs)
      if (graph.tensors[output].owner) needs_[op] += graph.storage_of(output).bytes;
  if (link.exists()) list_returns(graph, plan, link);
}

// As late as the link allows, the last one first.
void PlannedEviction::list_returns(const Graph& graph, const Plan& plan, const Link& link) {
  for (StorageId storage = 0; storage < graph.storages.size(); ++storage)
    for (const auto& absence : plan.absences[storage])
      if (absence.action == Action::kSwap) returns_.push_back({0, absence.to, storage});
  std::sort(returns_.begin(), returns_.end(), [](const auto& a, const auto& b) {
    return a.use != b.use ? a.use < b.use : a.storage < b.storage;
  });
  int64_t latest_ns = std::numeric_limits<int64_t>::max();
  for (auto at = returns_.rbegin(); at != returns_.rend(); ++at) {
    latest_ns = std::min(latest_ns, timetable_.start_ns(at->use) - link.latency_ns) -
                link.copy_ns(graph.storages[at->storage].bytes);
    at->latest_start_ns = latest_ns;
  }
}

void PlannedEviction::note(Machine& machine, StorageId storage) {
  const auto next = timetable_.next_use(storage, now_);
  const auto bytes =
      static_cast<double>(std::max<int64_t>(machine.graph().storages[storage].bytes, 1));
  const auto cost = static_cast<double>(machine.has_copy(storage) ? 0 : machine.cost_ns(storage));
  const uint32_t version = ++versions_[storage];
  if (next == kNone) {
    candidates_[kUseless].push({cost / bytes, storage, version});
    return;
  }
  switch (now_ < held_[storage] ? Action::kKeep : plan_.action(storage, now_)) {
    case Action::kSwap:
      if (machine.evictable(storage)) machine.swap_out(storage);
      return;
    case Action::kRecompute:
      candidates_[kPlanned].push({cost / bytes, storage, version});
      return;
    case Action::kKeep:
      if (following_ == Following::kStrict && !machine.has_copy(storage)) return;
      candidates_[kOther].push({cost / (bytes * (next - now_)), storage, version});
  }
}

bool PlannedEviction::still_valid(const Machine& machine, const Candidate& candidate) const {
  return versions_[candidate.storage] == candidate.version && machine.evictable(candidate.storage);
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
  while (!machine.fits(bytes)) {
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
  while (!machine.fits(bytes)) {
    const auto storage = pop(machine, kUseless);
    if (storage == kNone) return false;
    machine.drop(storage);
  }
  return true;
}

void PlannedEviction::before(Machine& machine, OperatorId op) {
  now_ = op;
  machine.settle();
  const auto until_ns = timetable_.start_ns(std::min(op + 1, timetable_.end()));
  for (; next_return_ < returns_.size(); ++next_return_) {
    const auto& [start_ns, use, storage] = returns_[next_return_];
    if (start_ns > until_ns) break;
    if (use <= op || machine.resident(storage)) continue;
    if (!machine.has_copy(storage)) continue;
    int64_t ahead = 0;
    for (Position at = op; at < std::min(op + kHorizon, timetable_.end()); ++at)
      ahead = std::max(ahead, needs_[at]);
    const auto bytes = machine.graph().storages[storage].bytes;
    if (!room_for(machine, bytes + ahead)) break;
    held_[storage] = use;
    machine.swap_in(storage);
  }
}

}  // namespace tierpilot::swap
