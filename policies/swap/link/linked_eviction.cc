#include "policies/swap/link/linked_eviction.h"

namespace tierpilot::swap {

namespace {
constexpr Position kSoon = 4;  // operators
}  // namespace

LinkedEviction::LinkedEviction(const Graph& graph, const Timetable& timetable, const Plan& plan,
                               const Score& score, const Link& link, uint64_t seed,
                               const Neighbourhood& near)
    : timetable_(timetable),
      plan_(plan),
      scores_(graph, score, seed, near),
      returns_(graph, timetable, plan, link) {}

// Waiting for a copy that is on its way is better than recomputing for longer.
bool LinkedEviction::make_room(Machine& machine, int64_t bytes) {
  while (!machine.device().fits(bytes)) {
    const auto storage = scores_.victim(machine);
    if (storage == kNone || machine.departs_in_ns() < machine.history().cost_ns(storage)) {
      if (machine.wait()) continue;
      if (storage == kNone) return false;
    }
    machine.drop(storage);
  }
  return true;
}

void LinkedEviction::unlocked(Machine& machine, StorageId storage) {
  if (returns_.is_held(storage, now_) || plan_.action(storage, now_) != Action::kSwap) return;
  if (machine.device().evictable(storage) && timetable_.next_use(storage, now_) != kNone)
    machine.swap_out(storage);
}

void LinkedEviction::before(Machine& machine, OperatorId op) {
  now_ = op;
  scores_.before(machine, op);
  machine.settle();
  returns_.begin_due(machine, op, [&](int64_t bytes) { return room_for(machine, bytes); });
}

// For a copy back what is needed next stays, and what came back does too.
bool LinkedEviction::room_for(Machine& machine, int64_t bytes) {
  while (!machine.device().fits(bytes)) {
    const auto storage = scores_.victim(machine);
    if (storage == kNone || returns_.is_held(storage, now_)) return false;
    const auto next = timetable_.next_use(storage, now_);
    if (next != kNone && next < now_ + kSoon) return false;
    machine.drop(storage);
  }
  return true;
}

}  // namespace tierpilot::swap
