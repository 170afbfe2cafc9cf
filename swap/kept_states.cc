#include "swap/kept_states.h"

#include <utility>

namespace tierpilot::swap {
namespace {

std::optional<int64_t> fixed_room(const std::string& rule) {
  if (rule == "swap-all") return 0;
  if (rule == "none" || rule == "vdnn" || rule == "checkpoint") return StateRoom::kAll;
  return std::nullopt;
}

}  // namespace

KeptStates::KeptStates(const std::string& rule) : fixed_bytes_(fixed_room(rule)) {}

bool KeptStates::kept(Id id, Slot& slot) {
  const bool stays = slot.bytes <= room_bytes() - staying_bytes_;
  slot.save = next_;
  order_.emplace(next_++, Kept{id, stays});
  bytes_ += slot.bytes;
  if (stays) staying_bytes_ += slot.bytes;
  return !stays;
}

void KeptStates::ended(const Slot& slot) {
  const auto found = order_.find(slot.save);
  if (found == order_.end()) return;
  bytes_ -= slot.bytes;
  if (found->second.stays) staying_bytes_ -= slot.bytes;
  order_.erase(found);
}

bool KeptStates::step_ended(StepWithStates step, const StateRoom::Foretell& foretell) {
  if (leave()) known_bytes_ = bytes_;
  step.updated = std::exchange(seen_, next_) != next_;
  if (fixed_bytes_ || (leave() && known_bytes_ == 0)) return false;
  step.state_bytes = known_bytes_;
  step.staying_bytes = leave() ? staying_bytes_ : known_bytes_;
  return room_.step_ended(step, foretell);
}

std::optional<int64_t> KeptStates::decided() const {
  return !fixed_bytes_ && room_.decided() ? std::optional(room_.bytes()) : std::nullopt;
}

}  // namespace tierpilot::swap
