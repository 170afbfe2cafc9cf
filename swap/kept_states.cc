#include "swap/kept_states.h"

namespace tierpilot::swap {

KeptStates::KeptStates(const std::string& rule)
    : fixed_(rule == "swap-all" || rule == "none" || rule == "vdnn" || rule == "checkpoint"),
      leave_(rule == "swap-all" || !fixed_) {}

void KeptStates::kept(Id id, Slot& slot) {
  slot.save = next_;
  order_.emplace(next_++, id);
  bytes_ += slot.bytes;
}

void KeptStates::ended(const Slot& slot) {
  if (order_.erase(slot.save) > 0) bytes_ -= slot.bytes;
}

void KeptStates::step_ended(int64_t peak_bytes, int64_t target_bytes, bool fits, bool settled) {
  if (fixed_) return;
  if (!fits)
    leave_ = true;
  else if (settled && peak_bytes + bytes_ <= target_bytes)
    leave_ = false;
}

}  // namespace tierpilot::swap
