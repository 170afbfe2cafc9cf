// Which storages are away when: what a planner decides.
#pragma once

#include <algorithm>
#include <vector>

#include "policies/swap/timetable.h"

namespace tierpilot::swap {

enum class Action : uint8_t { kKeep, kRecompute, kSwap };

// The storage may be away after operator `from` has run and before `to` does.
struct Absence {
  Position from, to;
  Action action;
};

struct Plan {
  std::vector<std::vector<Absence>> absences{};  // by storage, rising, apart

  Action action(StorageId storage, Position now) const {
    const auto& list = absences[storage];
    const auto after = std::upper_bound(list.begin(), list.end(), now,
                                        [](Position at, const auto& a) { return at < a.from; });
    if (after == list.begin()) return Action::kKeep;
    return now < std::prev(after)->to ? std::prev(after)->action : Action::kKeep;
  }
};

}  // namespace tierpilot::swap
