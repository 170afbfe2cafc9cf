// What leaves a machine and what comes over its link.
#include <algorithm>

#include "policies/swap/machine.h"

namespace tierpilot::swap {

void Machine::list(StorageId storage) {
  if (slots_[storage].listed) return;
  slots_[storage].listed = true;
  auto& anchor = candidates_.front();
  const auto last = anchor.previous;
  candidates_[storage + 1] = {last, kNone};
  (last == kNone ? anchor : candidates_[last + 1]).next = storage;
  anchor.previous = storage;
}

void Machine::unlist(StorageId storage) {
  if (!slots_[storage].listed) return;
  slots_[storage].listed = false;
  const auto [previous, next] = candidates_[storage + 1];
  (previous == kNone ? candidates_.front() : candidates_[previous + 1]).next = next;
  (next == kNone ? candidates_.front() : candidates_[next + 1]).previous = previous;
}

void Machine::release(StorageId storage) {
  auto& slot = slots_[storage];
  slot.resident = slot.leaving = false;
  used_ -= graph_.storages[storage].bytes;
  if (!has_copy(storage))
    for (const auto tensor : graph_.storages[storage].tensors) made_[tensor] = 0;
  manager_.left(*this, storage);
}

void Machine::drop(StorageId storage) {
  unlist(storage);
  if (!has_copy(storage)) ++outcome_.counts.evictions;
  release(storage);
}

void Machine::forget_copy(StorageId storage) {
  auto& slot = slots_[storage];
  if (slot.copied_ns == kNever) return;
  slot.copied_ns = kNever;
  if (slot.resident) return;
  for (const auto tensor : graph_.storages[storage].tensors) made_[tensor] = 0;
}

void Machine::swap_out(StorageId storage) {
  if (has_copy(storage)) return drop(storage);
  unlist(storage);
  auto& slot = slots_[storage];
  slot.leaving = true;
  if (slot.copied_ns == kNever) {
    const auto bytes = graph_.storages[storage].bytes;
    const auto begin = std::max({clock_ns_, out_free_ns_, slot.ready_ns});
    out_free_ns_ = begin + limits_.link.copy_ns(bytes);
    slot.copied_ns = out_free_ns_ + limits_.link.latency_ns;
    ++outcome_.counts.swaps_out;
    outcome_.counts.bytes_out += bytes;
  }
  const auto later = [](int64_t end_ns, const Departure& other) { return end_ns < other.end_ns; };
  departures_.insert(
      std::upper_bound(departures_.begin(), departures_.end(), slot.copied_ns, later),
      {slot.copied_ns, storage});
}

void Machine::swap_in(StorageId storage) {
  const auto bytes = graph_.storages[storage].bytes;
  auto& slot = slots_[storage];
  slot.resident = true;
  in_free_ns_ = std::max(clock_ns_, in_free_ns_) + limits_.link.copy_ns(bytes);
  slot.ready_ns = in_free_ns_ + limits_.link.latency_ns;
  used_ += bytes;
  outcome_.peak_bytes = std::max(outcome_.peak_bytes, used_);
  ++outcome_.counts.swaps_in;
  outcome_.counts.bytes_in += bytes;
  list(storage);
  manager_.arrived(*this, storage);
}

void Machine::settle() {
  while (!departures_.empty() && departures_.front().end_ns <= clock_ns_) {
    const auto storage = departures_.front().storage;
    departures_.pop_front();
    if (slots_[storage].leaving) release(storage);
  }
}

int64_t Machine::departs_in_ns() const {
  for (const auto& [end_ns, storage] : departures_)
    if (slots_[storage].leaving) return std::max<int64_t>(0, end_ns - clock_ns_);
  return kNever;
}

bool Machine::wait() {
  while (!departures_.empty() && !slots_[departures_.front().storage].leaving)
    departures_.pop_front();
  if (departures_.empty()) return false;
  stall_until(departures_.front().end_ns);
  settle();
  return true;
}

void Machine::stall_until(int64_t ns) {
  if (ns <= clock_ns_) return;
  ++outcome_.counts.stalls;
  outcome_.counts.stall_ns += ns - clock_ns_;
  clock_ns_ = ns;
}

}  // namespace tierpilot::swap
