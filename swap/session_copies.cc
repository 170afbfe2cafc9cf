// Copies out and in: who asks for what, and what the transfer threads do.
#include <algorithm>
#include <chrono>
#include <utility>

#include "swap/session.h"

namespace tierpilot::swap {

namespace {
constexpr size_t kAheadOfUnknown = 2;  // copies in at once, while the order of uses is not known

int64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}
}  // namespace

void Session::copy_out(Id id, Staging& staging) {
  std::unique_lock lock(mutex_);
  const auto [data, bytes, dropped] =
      std::tuple(slots_[id].data, slots_[id].bytes, slots_[id].dropped);
  Result<Block> block = fail(ErrorCode::kConflict, "dropped before it left");
  if (!dropped) {
    out_pace_.began(now_ns());
    lock.unlock();
    block = pool_.write(data, bytes, staging);
    lock.lock();
    out_pace_.ended(now_ns(), block ? bytes : 0);
  }
  auto& slot = slots_[id];
  --leaving_;
  if (block) {
    slot.block = *block;
    ++statistics_.copies_out;
    statistics_.bytes_out += bytes;
  }
  if (block || slot.dropped) {
    // What was asked for meanwhile stays, with its copy.
    slot.state = slot.used && !slot.dropped ? State::kBack : State::kCopied;
    if (slot.state == State::kCopied) copied_.push_back(id);
  } else {
    slot.state = State::kHere;
    ++statistics_.refused;
  }
  changed_.notify_all();
}

void Session::copy_in(Id id, Staging& staging) {
  std::unique_lock lock(mutex_);
  const auto block = slots_[id].block;
  auto* data = slots_[id].data;
  in_pace_.began(now_ns());
  lock.unlock();
  const auto status = pool_.read(block, data, staging);
  lock.lock();
  auto& slot = slots_[id];
  in_pace_.ended(now_ns(), status ? slot.bytes : 0);
  slot.state = State::kBack;
  slot.lost = !status;
  --coming_;
  coming_bytes_ -= slot.bytes;
  ++statistics_.copies_in;
  statistics_.bytes_in += slot.bytes;
  statistics_.lost += !status;
  if (auto* life = life_of(slot)) life->back_ns = watch_.since_begin_ns();
  changed_.notify_all();
}

Session::Where Session::use(Id id) {
  const std::lock_guard lock(mutex_);
  auto* slot = find(id);
  if (!slot) return Where::kLost;
  if (in_step(*slot) && !std::exchange(slot->used, true)) {
    --unused_;
    watch_.event(0);
    late_ = 0;
    watch_.used(slot->save);
    life_.storages[slot->save].used_ns = watch_.since_begin_ns();
  }
  slot->used = true;
  switch (slot->state) {
    case State::kAway:
      ++statistics_.late;
      return slot->lost ? Where::kLost : Where::kAway;
    case State::kComing:
      ++statistics_.late;
      return Where::kComing;
    case State::kCopied:
      slot->state = State::kBack;
      [[fallthrough]];
    default:
      return slot->lost ? Where::kLost : Where::kHere;
  }
}

void Session::fetch(Id id, std::byte* data) {
  const std::lock_guard lock(mutex_);
  auto* slot = find(id);
  if (!slot || slot->state != State::kAway) return;
  slot->state = State::kComing;
  --away_;
  slot->data = data;
  ++coming_;
  coming_bytes_ += slot->bytes;
  hold(slot->bytes);
  if (auto* life = life_of(*slot)) life->fetched_ns = watch_.since_begin_ns();
  in_.push(id);
}

Session::Where Session::wait(Id id) {
  std::unique_lock lock(mutex_);
  if (!find(id)) return Where::kLost;
  stall(lock, [&] { return slots_[id].state != State::kComing; });
  const auto& slot = slots_[id];
  if (slot.lost) return Where::kLost;
  return slot.state == State::kAway ? Where::kAway : Where::kHere;
}

void Session::release(Id id) {
  const std::lock_guard lock(mutex_);
  auto* slot = find(id);
  if (!slot || slot->state != State::kBack) return;
  slot->state = State::kAway;
  ++away_;
  hold(-slot->bytes);
}

// What is needed next of what is away, in the order that is known, or the other way round than it
// was saved; 0: nothing. `use` goes past it, `until_ns` gets the computing time until its use.
Id Session::next_back(const ObservedStep* order, size_t& use, int64_t& until_ns) {
  const auto saves = of_step_.size(), end = order ? order->uses.size() : saves;
  for (; use < end; ++use) {
    if (order) until_ns += order->time_ns[saves + use];
    const auto save = order ? order->uses[use] : saves - 1 - use;
    const auto id = of_step_[save];
    const auto* slot = find(id);
    if (slot && in_step(*slot) && slot->state == State::kAway && !slot->lost && !slot->used) {
      ++use;
      return id;
    }
  }
  return 0;
}

size_t Session::ahead(Id* ids, size_t most) {
  const std::lock_guard lock(mutex_);
  if (away_ == 0) return 0;
  const auto saves = of_step_.size(), used = watch_.step().uses.size();
  const auto* order = learner_.expected();
  if (order && order->saves.size() != saves) order = nullptr;
  auto bytes = resident_, coming_bytes = coming_bytes_;
  size_t count = 0, use = order ? used : 0;
  // What can wait until the next event is asked for then.
  int64_t until_ns = order && used < order->uses.size() ? -order->time_ns[saves + used] : 0;
  const Link link{.gb_per_s = in_pace_.gb_per_s(), .latency_ns = pool_.link().latency_ns};
  while (count < std::min(most, away_) && (order || coming_ + count < kAheadOfUnknown)) {
    const auto id = next_back(order, use, until_ns);
    if (id == 0) break;
    bytes += slots_[id].bytes;
    coming_bytes += slots_[id].bytes;
    const auto lead_ns = lead_factor_ * static_cast<double>(link.copy_ns(coming_bytes)) +
                         2.0 * static_cast<double>(link.latency_ns);
    if (order && static_cast<double>(until_ns) > lead_ns) break;
    if (bytes + others_ahead(saves + used, saves + use) > settings_.target_bytes()) break;
    ids[count++] = id;
  }
  return count;
}

}  // namespace tierpilot::swap
