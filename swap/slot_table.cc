#include "swap/slot_table.h"

#include <algorithm>

namespace tierpilot::swap {

using State = Slot::State;

// What is kept counts with what the device holds beside the saves of a step, which is measured.
void SlotTable::hold(const Slot& slot) {
  if (!slot.kept) totals_.resident_bytes += slot.bytes;
  totals_.peak_bytes = std::max(totals_.peak_bytes, totals_.resident_bytes);
}

void SlotTable::release(const Slot& slot) {
  if (!slot.kept) totals_.resident_bytes -= slot.bytes;
}

// One more or less is.
void SlotTable::away(const Slot& slot, int count) {
  totals_.away += static_cast<size_t>(count);
  if (!slot.kept) return;
  totals_.kept_away_bytes += count * slot.bytes;
  totals_.least_kept_away_bytes = std::min(totals_.least_kept_away_bytes, totals_.kept_away_bytes);
}

Id SlotTable::add(int64_t bytes, const std::byte* data, bool kept, ComputeDevice::Stream stream) {
  auto id = static_cast<Id>(slots_.size());
  if (free_.empty()) {
    free_.reserve(slots_.size() + 1);
    slots_.emplace_back();
  } else {
    id = free_.back(), free_.pop_back();
  }
  slots_[id] = {.state = State::kHere,
                .kept = kept,
                .bytes = bytes,
                .data = const_cast<std::byte*>(data),
                .stream = stream};
  hold(slots_[id]);
  return id;
}

Block SlotTable::remove(Id id) {
  auto& slot = slots_[id];
  is_told(id);
  const auto block = slot.block;
  if (slot.state == State::kAway)
    away(slot, -1);
  else
    release(slot);
  slot = {};
  free_.push_back(id);
  return block;
}

void SlotTable::leave(Id id) {
  slots_[id].state = State::kLeaving;
  ++totals_.leaving;
}

void SlotTable::announce(Id id) {
  auto& slot = slots_[id];
  slot.state = State::kCopied;
  slot.to_tell = true;
  slot.told_before = last_to_tell_;
  (last_to_tell_ ? slots_[last_to_tell_].told_after : first_to_tell_) = id;
  last_to_tell_ = id;
}

void SlotTable::is_told(Id id) {
  auto& slot = slots_[id];
  if (!slot.to_tell) return;
  (slot.told_before ? slots_[slot.told_before].told_after : first_to_tell_) = slot.told_after;
  (slot.told_after ? slots_[slot.told_after].told_before : last_to_tell_) = slot.told_before;
  slot.to_tell = false;
  slot.told_before = slot.told_after = 0;
}

void SlotTable::copied_out(Id id, const Block& block) {
  auto& slot = slots_[id];
  --totals_.leaving;
  slot.block = block;
  if (slot.used && !slot.dropped)
    slot.state = State::kBack;
  else
    announce(id);
}

bool SlotTable::not_copied(Id id) {
  --totals_.leaving;
  if (slots_[id].dropped) {
    announce(id);
    return false;
  }
  slots_[id].state = State::kHere;
  return true;
}

bool SlotTable::drop_later(Id id) {
  auto& slot = slots_[id];
  if (slot.state != State::kLeaving && slot.state != State::kCopied) return false;
  slot.dropped = true;
  return true;
}

Id SlotTable::next_copied() {
  const auto id = first_to_tell_;
  is_told(id);
  return id;
}

void SlotTable::let_go(Id id) {
  slots_[id].state = State::kAway;
  away(slots_[id], 1);
  release(slots_[id]);
}

void SlotTable::keep(Id id) {
  is_told(id);
  slots_[id].state = State::kBack;
}

void SlotTable::fetch(Id id, std::byte* data) {
  auto& slot = slots_[id];
  slot.state = State::kComing;
  slot.data = data;
  away(slot, -1);
  ++totals_.coming;
  totals_.coming_bytes += slot.bytes;
  hold(slot);
}

void SlotTable::copied_in(Id id, bool good) {
  auto& slot = slots_[id];
  slot.state = State::kBack;
  slot.lost = !good;
  --totals_.coming;
  totals_.coming_bytes -= slot.bytes;
}
}  // namespace tierpilot::swap
