#include "policies/swap/belady.h"

namespace tierpilot::swap {

bool BeladyEviction::make_room(Machine& machine, int64_t bytes) {
  const auto& evictables = machine.device().evictables();
  while (!machine.device().fits(bytes)) {
    StorageId last = kNone;
    Position last_use = 0;
    for (auto at = evictables.first(); at != kNone; at = evictables.next(at)) {
      const auto use = timetable_.next_use(at, now_);  // kNone, for never, is the largest
      if (machine.graph().storages[at].bytes == 0 || (last != kNone && use <= last_use)) continue;
      last = at;
      last_use = use;
    }
    if (last == kNone) {
      if (!machine.wait()) return false;
    } else if (last_use == kNone || !machine.limits().link.exists()) {
      machine.drop(last);
    } else {
      machine.swap_out(last);
      machine.wait();
    }
  }
  return true;
}

}  // namespace tierpilot::swap
