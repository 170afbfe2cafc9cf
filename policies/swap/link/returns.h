// When what a plan swaps comes back: as late as the link allows, on the clock of a step in which
// nothing ever leaves.
#pragma once

#include <vector>

#include "policies/swap/machine/machine.h"
#include "policies/swap/plan.h"

namespace tierpilot::swap {

class Returns {
 public:
  // Nothing ever returns where there is no link.
  Returns(const Graph& graph, const Timetable& timetable, const Plan& plan, const Link& link);

  // Before operator `op`: begins the copies that are due. `room_for(bytes)` makes room for one and
  // for what the next operators need, or says false: then it is tried again at the next operator.
  template <class RoomFor>
  void begin_due(Machine& machine, Position op, RoomFor room_for);
  // Came back for a use that is still to come.
  bool is_held(StorageId storage, Position now) const { return now < held_[storage]; }

 private:
  struct Return {
    int64_t latest_start_ns;
    Position use;
    StorageId storage;
  };
  // How many operators a copy back has to leave room for.
  static constexpr Position kHorizon = 4;

  int64_t ahead_bytes(Position op) const;

  const Timetable& timetable_;
  std::vector<Position> held_;  // until which use
  std::vector<int64_t> needs_;  // what each operator's outputs take
  std::vector<Return> returns_;
  size_t next_ = 0;
};

template <class RoomFor>
void Returns::begin_due(Machine& machine, Position op, RoomFor room_for) {
  const auto until_ns = timetable_.start_ns(std::min(op + 1, timetable_.end()));
  for (; next_ < returns_.size(); ++next_) {
    const auto& [start_ns, use, storage] = returns_[next_];
    if (start_ns > until_ns) return;
    if (use <= op || machine.device().resident(storage) || !machine.has_copy(storage)) continue;
    if (!room_for(machine.graph().storages[storage].bytes + ahead_bytes(op))) return;
    held_[storage] = use;
    machine.swap_in(storage);
  }
}

}  // namespace tierpilot::swap
