#include "swap/running_step.h"

#include <algorithm>
#include <utility>

namespace tierpilot::swap {

namespace {
constexpr size_t kMostSaves = 1'000'000;  // a step with more is cut
constexpr size_t kMostLate = 16;
}  // namespace

// All that was saved has been asked for or dropped; or a backward pass saves what a step began
// with, or so much that it is no recomputing.
bool RunningStep::over_before(const SavedStorage& next, const ObservedStep& seen) const {
  if (seen.saves.empty()) return false;
  if (spent() || seen.saves.size() >= kMostSaves) return true;
  return !seen.uses.empty() &&
         (next.place == first_place_ || late_ > std::max(kMostLate, seen.saves.size() / 2));
}

void RunningStep::save(Id id, Slot& slot, const SavedStorage& storage, int64_t now_ns) {
  if (saves_.empty()) first_place_ = storage.place;
  slot.step = number_;
  slot.save = saves_.size();
  saves_.push_back(id);
  life_.storages.push_back(
      {.place = storage.place, .kind = storage.kind, .bytes = storage.bytes, .saved_ns = now_ns});
  ++unspent_;
}

bool RunningStep::spend(Slot& slot) {
  if (!has(slot) || std::exchange(slot.used, true)) return false;
  --unspent_;
  return true;
}

void RunningStep::use(const Slot& slot, int64_t now_ns) {
  late_ = 0;
  life_.storages[slot.save].used_ns = now_ns;
}

Life* RunningStep::life_of(const Slot& slot) {
  return has(slot) && slot.save < life_.storages.size() ? &life_.storages[slot.save] : nullptr;
}

void RunningStep::segment_began(uint64_t place, bool again, int64_t now_ns) {
  if (life_.segments.size() < kMostSaves)
    life_.segments.push_back({.place = place, .began_ns = now_ns, .again = again});
}

void RunningStep::segment_ended(int64_t now_ns) {
  if (!life_.segments.empty() && life_.segments.back().ended_ns < 0)
    life_.segments.back().ended_ns = now_ns;
}

StepLife RunningStep::end(const StepEnd& seen) {
  ++number_;
  saves_.clear();
  unspent_ = oldest_ = late_ = 0;
  life_.step_ns = seen.step_ns;
  life_.stall_ns = seen.stall_ns;
  life_.peak_bytes = seen.peak_bytes;
  return std::exchange(life_, {});
}

}  // namespace tierpilot::swap
