// What comes back, and when: what is asked for, and what will be asked for soon.
#include <algorithm>

#include "swap/session.h"

namespace tierpilot::swap {

using State = Slot::State;

namespace {

constexpr size_t kAheadOfUnknown = 2;  // copies in at once, while the order of uses is not known

// What is needed next of what is away, in the order that is known, or the other way round than it
// was saved.
class NextUses {
 public:
  // `order`: nullptr where it is not known. `used`: so many of its uses have been.
  NextUses(const RunningStep& step, const SlotTable& slots, const ObservedStep* order, size_t used)
      : step_(step), slots_(slots), order_(order), use_(order ? used : 0) {
    // What can wait until the next event is asked for then.
    if (order && used < order->uses.size()) until_ns_ = -order->time_ns[step.saves().size() + used];
  }

  // 0: nothing.
  Id next() {
    const auto saves = step_.saves().size(), end = order_ ? order_->uses.size() : saves;
    while (use_ < end) {
      if (order_) until_ns_ += order_->time_ns[saves + use_];
      const auto save = order_ ? order_->uses[use_] : saves - 1 - use_;
      ++use_;
      const auto id = step_.saves()[save];
      if (is_missing(slots_.find(id), save)) return id;
    }
    return 0;
  }
  // Uses up to the one that was found last, and the computing time until then.
  size_t use() const { return use_; }
  int64_t until_ns() const { return until_ns_; }

 private:
  // Ids are given again: what was dropped is none of what has its id now.
  bool is_missing(const Slot* slot, size_t save) const {
    return slot && step_.has(*slot) && slot->save == save && slot->state == State::kAway &&
           !slot->lost && !slot->used;
  }

  const RunningStep& step_;
  const SlotTable& slots_;
  const ObservedStep* order_;
  size_t use_;
  int64_t until_ns_ = 0;
};

}  // namespace

Session::Where Session::use(Id id) {
  settle_to_measure();
  std::unique_lock lock(mutex_);
  const Telling telling(*this);
  auto* slot = slots_.find(id);
  if (!slot) return Where::kLost;
  if (step_.spend(*slot)) {
    watch_.event(0, slots_.totals().resident_bytes);
    watch_.used(slot->save);
    step_.use(*slot, watch_.since_begin_ns());
    if (!learner_.expected()) mend();  // what stayed, for gradients that have no room beside it
    if (step_.spent()) passed(lock);
    slot = slots_.find(id);
    if (!slot) return Where::kLost;
  }
  slot->used = true;
  if (slot->kept) states_.ended(*slot);
  switch (slot->state) {
    case State::kAway:
      ++statistics_.late;
      return slot->lost ? Where::kLost : Where::kAway;
    case State::kComing:
      ++statistics_.late;
      return Where::kComing;
    case State::kCopied:
      slots_.keep(id);
      [[fallthrough]];
    default:
      return slot->lost ? Where::kLost : Where::kHere;
  }
}

void Session::fetch(Id id, std::byte* data, ComputeDevice::Stream stream) {
  const std::lock_guard lock(mutex_);
  const Telling telling(*this);
  const auto* slot = slots_.find(id);
  if (!slot || slot->state != State::kAway) return;
  if (auto* life = step_.life_of(*slot)) life->fetched_ns = watch_.since_begin_ns();
  transfers_.copy_in(id, data, stream);
}

Session::Where Session::wait(Id id) {
  std::unique_lock lock(mutex_);
  if (!slots_.find(id)) return Where::kLost;
  stall(lock, [&] { return !slots_.coming(id); });
  const auto* slot = slots_.find(id);
  if (slot && slot->lost) return Where::kLost;
  return slot && slot->state == State::kAway ? Where::kAway : Where::kHere;
}

void Session::release(Id id) {
  const std::lock_guard lock(mutex_);
  const Telling telling(*this);
  const auto* slot = slots_.find(id);
  if (slot && slot->state == State::kBack) slots_.let_go(id);
}

size_t Session::ahead(Id* ids, size_t most) {
  const std::lock_guard lock(mutex_);
  const auto& totals = slots_.totals();
  if (totals.away == 0) return 0;
  most = std::min(most, totals.away);
  const auto saves = step_.saves().size(), used = watch_.step().uses.size();
  const auto* order = learner_.expected();
  if (order && order->saves.size() != saves) order = nullptr;
  NextUses uses(step_, slots_, order, used);
  auto bytes = totals.resident_bytes, coming_bytes = totals.coming_bytes;
  const auto link = transfers_.link_in();
  const auto is_time_for = [&](int64_t more) {
    bytes += more;
    coming_bytes += more;
    const auto lead_ns = lead_.factor() * static_cast<double>(link.copy_ns(coming_bytes)) +
                         2.0 * static_cast<double>(link.latency_ns);
    if (order && static_cast<double>(uses.until_ns()) > lead_ns) return false;
    const auto beside = others_.most_bytes(learner_.expected(), saves + used, saves + uses.use(),
                                           watch_.observed_other_bytes());
    return bytes + beside <= target_bytes();
  };
  size_t count = 0;
  while (count < most && (order || totals.coming + count < kAheadOfUnknown)) {
    const auto id = uses.next();
    if (id == 0)
      return order && used > 0 ? count + states_ahead(ids + count, most - count, bytes, is_time_for)
                               : count;
    if (!is_time_for(slots_.find(id)->bytes)) break;
    ids[count++] = id;
  }
  return count;
}

// Behind the last use of the step: what is kept comes back in its order.
size_t Session::states_ahead(Id* ids, size_t most, int64_t& bytes,
                             const std::function<bool(int64_t)>& is_time_for) {
  size_t count = 0;
  for (const auto& [place, kept] : states_.order()) {
    const auto& slot = *slots_.find(kept.id);
    if (slot.state == State::kComing || slot.state == State::kBack) bytes += slot.bytes;
    if (slot.state != State::kAway || slot.lost) continue;
    if (count == most || !is_time_for(slot.bytes)) break;
    ids[count++] = kept.id;
  }
  return count;
}

}  // namespace tierpilot::swap
