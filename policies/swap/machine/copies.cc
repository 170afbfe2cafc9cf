#include "policies/swap/machine/copies.h"

#include <algorithm>
#include <utility>

namespace tierpilot::swap {

void LinkCopies::leave(StorageId storage, int64_t bytes, int64_t now_ns) {
  auto& slot = slots_[storage];
  slot.leaving = true;
  if (slot.copied_ns == kNever) {
    const auto begin_ns = std::max({now_ns, out_free_ns_, slot.ready_ns});
    out_free_ns_ = begin_ns + link_.copy_ns(bytes);
    slot.copied_ns = out_free_ns_ + link_.latency_ns;
    ++copies_out_;
    bytes_out_ += bytes;
  }
  const auto later = [](int64_t end_ns, const Departure& other) { return end_ns < other.end_ns; };
  departures_.insert(
      std::upper_bound(departures_.begin(), departures_.end(), slot.copied_ns, later),
      {slot.copied_ns, storage});
}

void LinkCopies::come_back(StorageId storage, int64_t bytes, int64_t now_ns) {
  in_free_ns_ = std::max(now_ns, in_free_ns_) + link_.copy_ns(bytes);
  slots_[storage].ready_ns = in_free_ns_ + link_.latency_ns;
  ++copies_in_;
  bytes_in_ += bytes;
}

int64_t LinkCopies::next_departure_ns() const {
  for (const auto& [end_ns, storage] : departures_)
    if (slots_[storage].leaving) return end_ns;
  return kNever;
}

void LinkCopies::skip_stays() {
  while (!departures_.empty() && !slots_[departures_.front().storage].leaving)
    departures_.pop_front();
}

StorageId LinkCopies::take_departed(int64_t now_ns) {
  while (!departures_.empty() && departures_.front().end_ns <= now_ns) {
    const auto storage = departures_.front().storage;
    departures_.pop_front();
    if (std::exchange(slots_[storage].leaving, false)) return storage;
  }
  return kNone;
}

void LinkCopies::add_to(Counts& counts) const {
  counts.swaps_out += copies_out_;
  counts.swaps_in += copies_in_;
  counts.bytes_out += bytes_out_;
  counts.bytes_in += bytes_in_;
}

}  // namespace tierpilot::swap
