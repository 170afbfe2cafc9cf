#include "swap/session.h"

#include <algorithm>
#include <new>
#include <utility>

namespace tierpilot::swap {

Session::Session(const SessionSettings& settings, std::unique_ptr<ComputeDevice> device,
                 std::shared_ptr<TierSet> tiers)
    : settings_(settings),
      budget_bytes_(settings.budget_bytes),
      device_(std::move(device)),
      learner_(
          {.rule = settings.rule, .limits = {.budget_bytes = target_bytes(), .recompute = false}}),
      segments_(settings.rule),
      watch_(device_->memory()),
      states_(settings.rule),
      transfers_(std::move(tiers), *device_, settings.threads, mutex_, slots_,
                 [this](const Slot& slot, bool in) { copied(slot, in); }) {
  learner_.set_link(transfers_.link());
  // No plan lets anything leave for that, whatever of it is free.
  if (makes_room()) watch_.set_little(target_bytes() / 4);
  watch_.begin(true);
  tell_news();
}

void Session::copied(const Slot& slot, bool in) {
  if (in)
    if (auto* life = step_.life_of(slot)) life->back_ns = watch_.since_begin_ns();
  tell_news();
}

// What is worth a call of the front end.
void Session::tell_news() {
  const auto& totals = slots_.totals();
  uint32_t news = totals.away > 0 ? uint32_t{kAhead} : 0;
  if (slots_.any_copied() || watch_.near(target_bytes()) || (totals.leaving > 0 && over_budget()))
    news |= kLeft;
  if (device_->runs_ahead() && (watch_.observes() || step_.spent())) news |= kMemory;
  if (states_.leave()) news |= kStates;
  news_.store(news, std::memory_order_relaxed);
}

void Session::tell_memory(int64_t held_bytes, int64_t peak_bytes) {
  device_->tell_memory(held_bytes, peak_bytes);
}

// What has been told to compute is no time of what comes next.
void Session::settle() {
  const auto mark = device_->mark(last_stream_);
  (void)device_->reach(mark);
  device_->forget(mark);
}

void Session::settle_to_measure() {
  if (news_.load(std::memory_order_relaxed) & kMemory) settle();
}

// The last of what the step saved was asked for, and is computed with.
void Session::passed(std::unique_lock<std::mutex>& lock) {
  if (device_->runs_ahead()) {
    lock.unlock();  // copies end meanwhile
    settle();
    lock.lock();
  }
  watch_.passed();
  slots_.reset_least();
}

void Session::begin() {
  settle_to_measure();
  const std::lock_guard lock(mutex_);
  const Telling telling(*this);
  finish_step();
}

void Session::finish_step() {
  ran_out_ = outgrown_ = false;
  if (watch_.step().saves.empty()) {
    segments_.finish_unsaved(transfers_.link());
    (void)step_.end({});
    see_to_states(with_states_of({.peak_bytes = watch_.most_held_bytes()}, statistics_.steps == 0));
    going_bytes_ = going_states();
    return watch_.begin(true);
  }
  const auto copied_ns = transfers_.processor_ns();
  auto seen =
      watch_.end(slots_.totals().resident_bytes, copied_ns - std::exchange(copied_ns_, copied_ns));
  auto& s = statistics_;
  ++s.steps;
  s.last_step_ns = seen.step_ns;
  s.last_stall_ns = seen.stall_ns;
  s.last_passes_ns = seen.passes_ns;
  s.last_others_ns = seen.others_ns;
  s.last_peak_bytes = seen.peak_bytes;
  s.device_peak_bytes = std::max(s.device_peak_bytes, seen.peak_bytes);
  seen.timed = !device_->runs_ahead() || seen.step.other_bytes.size() == seen.step.time_ns.size();
  const bool fits = seen.peak_bytes <= budget_bytes_;
  s.over_budget_steps += !fits;
  auto refusal = transfers_.take_refusal();
  s.refusal = fits ? std::string() : std::move(refusal);
  lead_.step_ended(seen.whole_ns(), seen.waited_ns());
  s.learning_steps += learner_.learning();
  const auto link = transfers_.link();
  // What is still on its way out has not grown, and will not be there.
  const auto going_bytes = going_states();
  const auto growth_bytes =
      watch_.growth_bytes() - (going_bytes - std::exchange(going_bytes_, going_bytes));
  const bool settled = !learner_.learning();
  const auto with_states = with_states_of(seen, settled);
  learner_.set_link(link);
  segments_.finish(seen, target_bytes() - std::max<int64_t>(growth_bytes, 0), link, fits);
  last_life_ = step_.end(seen);
  learner_.end(std::move(seen), growth_bytes);
  if (segments_.asks_to_measure()) learner_.look_at_next();
  see_to_states(with_states);
  s.known_steps = static_cast<int64_t>(learner_.known_steps());
  s.least_bytes = learner_.least_bytes();
  others_.begin_step();
  learner_.begin();
  watch_.begin(watch_.observes());
}

// Bytes of states that leave and are not away yet.
int64_t Session::going_states() const {
  int64_t bytes = 0;
  for (const auto& [_, kept] : states_.order()) {
    const auto& slot = *slots_.find(kept.id);
    if (slot.state == Slot::State::kLeaving || slot.state == Slot::State::kCopied)
      bytes += slot.bytes;
  }
  return bytes;
}

StepWithStates Session::with_states_of(const StepEnd& seen, bool settled) const {
  return {.cost_ns = seen.step_ns - seen.others_ns,
          .wait_ns = seen.stall_ns - seen.waited_ns(),
          .peak_bytes = seen.peak_bytes,
          .passes_peak_bytes = seen.passes_peak_bytes,
          .target_bytes = target_bytes(),
          .least_away_bytes = slots_.totals().least_kept_away_bytes,
          .fits = seen.peak_bytes <= budget_bytes_,
          .settled = settled};
}

void Session::see_to_states(const StepWithStates& step) {
  const auto foretell = [this](int64_t more) { return learner_.foretold_ns(more); };
  const auto before_bytes = states_.to_stay_bytes();
  if (states_.step_ended(step, foretell))
    learner_.look_again(states_.to_stay_bytes() - before_bytes);
}

// Segments that begin in a backward pass are none of the step's.
bool Session::segment_begin(uint64_t place, int64_t input_bytes) {
  const std::lock_guard lock(mutex_);
  const bool no_saves = watch_.step().saves.empty();
  if (no_saves ? segments_.began_with(place) : step_.spent()) finish_step();
  if (!watch_.step().uses.empty()) return false;
  const bool again = segments_.begin(place, input_bytes, watch_.computed_ns());
  step_.segment_began(place, again, watch_.since_begin_ns());
  return again;
}

void Session::segment_end(bool possible) {
  const std::lock_guard lock(mutex_);
  segments_.end(possible, watch_.computed_ns());
  step_.segment_ended(watch_.since_begin_ns());
}

Id Session::save(const SavedStorage& storage, const std::byte* data, ComputeDevice::Stream stream,
                 bool finished) {
  last_stream_ = stream;
  settle_to_measure();
  const std::lock_guard lock(mutex_);
  const Telling telling(*this);
  if (step_.over_before(storage, watch_.step())) finish_step();
  ++statistics_.saves;
  statistics_.saved_bytes += storage.bytes;
  if (!watch_.step().uses.empty()) {
    step_.save_late();  // recomputed in a backward pass, to be used at once: stays
    return slots_.add(storage.bytes, data, false, stream);
  }
  const auto resident = slots_.totals().resident_bytes;
  watch_.event(storage.bytes, resident);
  others_.saved(storage.bytes, watch_.other_bytes());
  const auto advice = learner_.save(storage);
  watch_.observe(advice.observe, resident);
  watch_.save(storage);
  segments_.saved(storage.bytes);
  const auto id = slots_.add(storage.bytes, data, false, stream);
  step_.save(id, *slots_.find(id), storage, watch_.since_begin_ns());
  const bool stays = !advice.away || plainly_fits();
  if (!finished) unfinished_.add(id, !stays);
  let_leave(id, finished && !stays, !learner_.expected() && !stays && makes_room());
  return id;
}

void Session::try_copy_out(Id id) {
  try {
    transfers_.copy_out(id);
  } catch (const std::bad_alloc&) {
    // It stays.
  }
}

// It is saved, whatever there is no memory for.
void Session::let_leave(Id id, bool it, bool all_before) {
  try {
    if (it) transfers_.copy_out(id);
    if (all_before)
      while (let_oldest_leave()) continue;  // that stayed as long as all fitted
    mend();
  } catch (const std::bad_alloc&) {
    // They stay.
  }
}

void Session::finished() {
  const std::lock_guard lock(mutex_);
  const Telling telling(*this);
  for (const auto id : unfinished_.finish()) {
    const auto* slot = slots_.find(id);
    if (slot && slot->state == Slot::State::kHere && !slot->used) transfers_.copy_out(id);
  }
}

// None of a step's: how long it stays away is not for the step's plan to say.
Id Session::save_state(int64_t bytes, const std::byte* data, ComputeDevice::Stream stream) {
  const std::lock_guard lock(mutex_);
  const Telling telling(*this);
  ++statistics_.state_saves;
  const auto id = slots_.add(bytes, data, true, stream);
  if (states_.kept(id, *slots_.find(id))) try_copy_out(id);
  return id;
}

void Session::stall(std::unique_lock<std::mutex>& lock, const std::function<bool()>& until) {
  if (until()) return;
  const auto begin = watch_.since_begin_ns();
  transfers_.wait(lock, until);
  const auto ns = watch_.since_begin_ns() - begin;
  watch_.stalled(ns);
  ++statistics_.stalls;
  statistics_.stall_ns += ns;
}

bool Session::drop(Id id) {
  std::unique_lock lock(mutex_);
  const Telling telling(*this);
  auto* slot = slots_.find(id);
  if (!slot) return false;
  unfinished_.forget(id);
  if (step_.spend(*slot) && step_.spent()) {
    passed(lock);
    slot = slots_.find(id);
    if (!slot) return false;
  }
  if (slot->kept) states_.ended(*slot);
  if (auto* life = step_.life_of(*slot)) life->ended_ns = watch_.since_begin_ns();
  if (slots_.drop_later(id)) return true;
  if (slots_.coming(id)) transfers_.wait(lock, [&] { return !slots_.coming(id); });
  if (slots_.find(id)) transfers_.forget(id);
  return false;
}

void Session::held(Id id) {
  const std::lock_guard lock(mutex_);
  const auto* slot = slots_.find(id);
  if (slot && step_.has(*slot)) watch_.step().saves[slot->save].held = true;
}

// More than it held then the device did not have, unless what the step began with was too large for
// any. Where that is as much as was aimed at, memory lies in pieces that nothing fits into: as good
// as less, but not for what never fits.
void Session::lower_budget() {
  const auto most_bytes = watch_.peak_bytes();
  int64_t bytes = budget_bytes_;
  if (lowered_++ < kMostLowered) bytes -= bytes / 8;
  if (most_bytes > 0 && !watch_.step().saves.empty()) bytes = std::min(bytes, most_bytes);
  budget_bytes_ = bytes;
  learner_.set_budget(target_bytes());
  watch_.set_little(0);
}

void Session::failed() {
  const std::lock_guard lock(mutex_);
  const Telling telling(*this);
  ++statistics_.failures;
  // Of a plan that was only tried: the one before had room.
  if (learner_.failed()) return;
  if (!std::exchange(ran_out_, true)) lower_budget();
}

Statistics Session::statistics() {
  const std::lock_guard lock(mutex_);
  auto all = statistics_;
  all.given_back = watch_.given_back();
  all.giving_ns = watch_.giving_ns();
  all.state_bytes = states_.bytes();
  all.state_staying_bytes = states_.staying_bytes();
  all.saved_peak_bytes = slots_.totals().peak_bytes;
  segments_.add_to(all);
  transfers_.add_to(all);
  return all;
}

KeptPlans Session::kept() {
  const std::lock_guard lock(mutex_);
  if (step_.spent()) finish_step();
  return {.steps = learner_.kept(), .segments = segments_.kept(), .state_room = states_.decided()};
}

void Session::restore(KeptPlans plans) {
  const std::lock_guard lock(mutex_);
  learner_.restore(std::move(plans.steps));
  segments_.restore(plans.segments);
  if (plans.state_room) states_.restore(*plans.state_room);
  statistics_.restored_steps = static_cast<int64_t>(learner_.known_steps());
}

StepLife Session::last_step() {
  const std::lock_guard lock(mutex_);
  return last_life_;
}

}  // namespace tierpilot::swap
