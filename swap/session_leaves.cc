// What leaves beside what the plan says, and when the front end lets go of it.
#include "swap/session.h"

namespace tierpilot::swap {

int64_t Session::needed_bytes() const {
  const auto events = watch_.step().events();
  const auto beside =
      others_.most_bytes(learner_.expected(), events, events, watch_.observed_other_bytes());
  return slots_.totals().resident_bytes + beside;
}

// Whether so little is needed in a step that is not known that the other half has room for what it
// brings forth: gradients take no more than the weights that are there. Where memory once ran out
// nobody knows.
bool Session::plainly_fits() {
  if (learner_.expected() || !makes_room() || statistics_.failures > 0) return false;
  outgrown_ = outgrown_ || needed_bytes() > target_bytes() / 2;
  return !outgrown_;
}

// Whether the rule lets as much leave as has to.
bool Session::makes_room() const {
  return settings_.rule == "swap" || settings_.rule == "capuchin";
}

// False: none is left. It is needed last.
bool Session::let_oldest_leave() {
  const auto id = step_.next_oldest();
  if (id == 0) return false;
  const auto* slot = slots_.find(id);
  if (slot && step_.has(*slot) && slot->state == Slot::State::kHere && !slot->used &&
      !unfinished_.leaves_later(id))
    transfers_.copy_out(id);
  return true;
}

// What was to stay leaves after all where the device is over its budget.
void Session::mend() {
  if (settings_.rule == "none" || settings_.rule == "vdnn" || settings_.rule == "checkpoint")
    return;
  while (slots_.totals().leaving == 0 && over_budget())
    if (!let_oldest_leave()) return;
}

bool Session::fits(int64_t bytes) {
  const auto most = target_bytes() - slots_.totals().coming_bytes - bytes;
  const auto excess = watch_.held_bytes() - most;
  if (excess > 0) watch_.give_back(excess);
  return watch_.held_bytes() <= most;
}

bool Session::room(int64_t bytes, bool wait) {
  std::unique_lock lock(mutex_);
  if (!states_.leave()) return true;  // nothing would change it
  if (wait) stall(lock, [&] { return nothing_to_wait_for() || fits(bytes); });
  return fits(bytes);
}

// For what the copies that are under way will change.
bool Session::nothing_to_wait_for() const {
  return slots_.any_copied() || slots_.totals().leaving == 0;
}

size_t Session::left(Id* ids, size_t most) {
  std::unique_lock lock(mutex_);
  const Telling telling(*this);
  if (over_budget()) stall(lock, [this] { return nothing_to_wait_for() || !over_budget(); });
  size_t count = 0;
  while (count < most) {
    const auto id = slots_.next_copied();
    if (id == 0) break;
    ids[count++] = id;
    const auto& slot = *slots_.find(id);
    if (auto* life = step_.life_of(slot)) life->left_ns = watch_.since_begin_ns();
    if (slot.dropped)
      transfers_.forget(id);
    else
      slots_.let_go(id);
  }
  if (count > 0) mend();
  // What comes back is not resident before it is written.
  if (count == 0) watch_.make_room(target_bytes() - slots_.totals().coming_bytes);
  return count;
}

}  // namespace tierpilot::swap
