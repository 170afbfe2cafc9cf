#include "swap/session.h"

#include <algorithm>
#include <utility>

namespace tierpilot::swap {

namespace {
constexpr size_t kMostSaves = 1'000'000;  // a step with more is cut
constexpr size_t kMostLate = 16;
constexpr int64_t kOperands =
    3;  // of the largest saved size: room for what an unknown step does next
}  // namespace

Session::Session(const SessionSettings& settings, std::vector<MeasuredTier> tiers)
    : settings_(settings),
      pool_(std::move(tiers)),
      out_pace_(pool_.tiers().front().write_gb_per_s),
      in_pace_(pool_.tiers().front().read_gb_per_s),
      learner_({.rule = settings.rule,
                .limits = {.budget_bytes = settings.target_bytes(),
                           .recompute = false,
                           .link = link()}}),
      segment_learner_(settings.rule == "swap", settings.rule == "checkpoint"),
      slots_(1),
      out_("tp-swap-out", settings.out_threads, [this](Id id, Staging& s) { copy_out(id, s); }),
      in_("tp-swap-in", settings.in_threads, [this](Id id, Staging& s) { copy_in(id, s); }) {
  watch_.begin(true);
}

Session::~Session() = default;

Session::Slot* Session::find(Id id) {
  if (id == 0 || id >= slots_.size() || slots_[id].state == State::kFree) return nullptr;
  return &slots_[id];
}

Life* Session::life_of(const Slot& slot) {
  return in_step(slot) && slot.save < life_.storages.size() ? &life_.storages[slot.save] : nullptr;
}

Link Session::link() const {
  return {.gb_per_s = std::min(out_pace_.gb_per_s(), in_pace_.gb_per_s()),
          .latency_ns = pool_.link().latency_ns};
}

void Session::hold(int64_t bytes) {
  resident_ += bytes;
  statistics_.saved_peak_bytes = std::max(statistics_.saved_peak_bytes, resident_);
  watch_.resident(resident_);
}

void Session::begin() {
  const std::lock_guard lock(mutex_);
  finish_step();
}

void Session::finish_step() {
  if (watch_.step().saves.empty()) {
    segments_.clear();
    segment_learner_.end(nullptr, link(), 0, false);
    return watch_.begin(true);
  }
  auto seen = watch_.end();
  auto& s = statistics_;
  ++s.steps;
  s.last_step_ns = life_.step_ns = seen.step_ns;
  s.last_stall_ns = life_.stall_ns = seen.stall_ns;
  s.last_peak_bytes = life_.peak_bytes = seen.peak_bytes;
  s.device_peak_bytes = std::max(s.device_peak_bytes, seen.peak_bytes);
  if (seen.peak_bytes > settings_.budget_bytes) ++s.over_budget_steps;
  // Copies that came late where nothing else was to wait for: earlier the next time.
  if (seen.stall_ns * 50 > seen.step_ns) lead_factor_ = std::min(lead_factor_ * 1.3, 8.0);
  s.learning_steps += learner_.learning();
  learner_.set_link(link());
  finish_segments(seen.step, seen.step_ns, seen.peak_bytes);
  learner_.end(std::move(seen), watch_.growth_bytes());
  s.known_steps = static_cast<int64_t>(learner_.known_steps());
  s.least_bytes = learner_.least_bytes();
  last_life_ = std::exchange(life_, {});
  of_step_.clear();
  oldest_kept_ = 0;
  unused_ = late_ = 0;
  largest_ = largest_other_ = 0;
  ++step_;
  learner_.begin();
  watch_.begin(watch_.observes());
}

void Session::finish_segments(const ObservedStep& seen, int64_t step_ns, int64_t peak_bytes) {
  const bool fits = peak_bytes <= settings_.budget_bytes;
  SegmentedStep step{.segments = std::exchange(segments_, {})};
  in_segment_ = false;
  const bool observed = seen.other_bytes.size() == seen.time_ns.size();
  if (segment_learner_.recomputes() || !observed)
    return segment_learner_.end(nullptr, link(), step_ns, fits);
  step.over_bytes =
      seen.kept_bytes() + std::max<int64_t>(watch_.growth_bytes(), 0) - settings_.target_bytes();
  for (size_t at = 0; at < seen.time_ns.size(); ++at)
    (at < seen.saves.size() ? step.forward_ns : step.backward_ns) += seen.time_ns[at];
  segment_learner_.end(&step, link(), step_ns, fits);
}

// Segments that begin in a backward pass are none of the step's.
bool Session::segment_begin(uint64_t place, int64_t input_bytes) {
  const std::lock_guard lock(mutex_);
  const bool no_saves = watch_.step().saves.empty();
  if (no_saves ? !segments_.empty() && place == segments_.front().place : unused_ == 0)
    finish_step();
  if (in_segment_ || !watch_.step().uses.empty() || segments_.size() >= kMostSaves) return false;
  const bool again = segment_learner_.begin(place);
  statistics_.recomputed_segments += again;
  ++statistics_.segments;
  in_segment_ = true;
  segments_.push_back({.place = place, .freed_bytes = -std::max<int64_t>(input_bytes, 0)});
  segment_began_ns_ = watch_.computed_ns();
  return again;
}

void Session::segment_end(bool possible) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(in_segment_, false)) return;
  auto& segment = segments_.back();
  segment.compute_ns = std::max<int64_t>(watch_.computed_ns() - segment_began_ns_, 0);
  segment.freed_bytes = std::max<int64_t>(segment.freed_bytes, 0);
  segment.possible = possible;
}

// All that was saved has been asked for or dropped; or a backward pass saves what a step began
// with, or so much that it is no recomputing.
bool Session::begins_step(const SavedStorage& storage) {
  const auto& seen = watch_.step();
  if (seen.saves.empty()) return false;
  if (unused_ == 0 || seen.saves.size() >= kMostSaves) return true;
  return !seen.uses.empty() &&
         (storage.place == first_place_ || late_ > std::max(kMostLate, seen.saves.size() / 2));
}

Id Session::add_slot(const SavedStorage& storage, const std::byte* data) {
  auto id = static_cast<Id>(slots_.size());
  if (free_.empty())
    slots_.emplace_back();
  else
    id = free_.back(), free_.pop_back();
  slots_[id] = {
      .state = State::kHere, .bytes = storage.bytes, .data = const_cast<std::byte*>(data)};
  ++statistics_.saves;
  statistics_.saved_bytes += storage.bytes;
  return id;
}

Id Session::save(const SavedStorage& storage, const std::byte* data) {
  const std::lock_guard lock(mutex_);
  if (begins_step(storage)) finish_step();
  const auto id = add_slot(storage, data);
  if (!watch_.step().uses.empty()) {
    ++late_;  // recomputed in a backward pass, to be used at once: stays
    hold(storage.bytes);
    return id;
  }
  if (of_step_.empty()) first_place_ = storage.place;
  watch_.event(storage.bytes);
  largest_ = std::max(largest_, storage.bytes);
  largest_other_ = std::max(largest_other_, watch_.other_bytes());
  const auto advice = learner_.save(storage);
  watch_.observe(advice.observe);
  watch_.save(storage);
  if (in_segment_) segments_.back().freed_bytes += storage.bytes;
  slots_[id].step = step_;
  slots_[id].save = of_step_.size();
  of_step_.push_back(id);
  life_.storages.push_back({.place = storage.place,
                            .kind = storage.kind,
                            .bytes = storage.bytes,
                            .saved_ns = watch_.since_begin_ns()});
  ++unused_;
  hold(storage.bytes);
  if (advice.away) leave(id);
  mend();
  return id;
}

void Session::leave(Id id) {
  slots_[id].state = State::kLeaving;
  ++leaving_;
  out_.push(id);
}

// The most that the device is expected to hold beside saved storages in the intervals that end with
// events `from` to `to`.
int64_t Session::others_ahead(size_t from, size_t to) const {
  int64_t most = watch_.observes() ? watch_.other_bytes() : 0;
  const auto* step = learner_.expected();
  if (!step) return std::max(most, largest_other_) + kOperands * largest_;
  const auto end = std::min(to + 1, step->other_bytes.size());
  for (size_t at = from; at < end; ++at) most = std::max(most, step->other_bytes[at]);
  return most;
}

bool Session::over_budget() const {
  const auto events = watch_.step().events();
  return resident_ + others_ahead(events, events) > settings_.target_bytes();
}

// What was to stay leaves after all where the device is over its budget: the oldest is needed last.
void Session::mend() {
  if (settings_.rule == "none" || settings_.rule == "vdnn" || settings_.rule == "checkpoint")
    return;
  while (leaving_ == 0 && over_budget() && oldest_kept_ < of_step_.size()) {
    const auto id = of_step_[oldest_kept_++];
    const auto* slot = find(id);
    if (slot && in_step(*slot) && slot->state == State::kHere && !slot->used) leave(id);
  }
}

void Session::stall(std::unique_lock<std::mutex>& lock, const std::function<bool()>& until) {
  if (until()) return;
  const auto begin = watch_.since_begin_ns();
  changed_.wait(lock, until);
  const auto ns = watch_.since_begin_ns() - begin;
  watch_.stalled(ns);
  ++statistics_.stalls;
  statistics_.stall_ns += ns;
}

size_t Session::left(Id* ids, size_t most) {
  std::unique_lock lock(mutex_);
  if (over_budget())
    stall(lock, [this] { return !copied_.empty() || leaving_ == 0 || !over_budget(); });
  size_t count = 0;
  while (count < most && !copied_.empty()) {
    const auto id = copied_.front();
    copied_.pop_front();
    auto* slot = find(id);
    if (!slot || slot->state != State::kCopied) continue;  // asked for meanwhile
    hold(-slot->bytes);
    ids[count++] = id;
    if (auto* life = life_of(*slot)) life->left_ns = watch_.since_begin_ns();
    if (slot->dropped)
      free_slot(id);
    else
      slot->state = State::kAway, ++away_;
  }
  if (count > 0) mend();
  // What comes back is not resident before it is written.
  if (count == 0) watch_.make_room(settings_.target_bytes() - coming_bytes_);
  return count;
}

void Session::free_slot(Id id) {
  away_ -= slots_[id].state == State::kAway;
  pool_.free(slots_[id].block);
  slots_[id] = {};
  free_.push_back(id);
}

bool Session::drop(Id id) {
  std::unique_lock lock(mutex_);
  auto* slot = find(id);
  if (!slot) return false;
  if (in_step(*slot) && !std::exchange(slot->used, true)) --unused_;
  if (auto* life = life_of(*slot)) life->ended_ns = watch_.since_begin_ns();
  if (slot->state == State::kLeaving || slot->state == State::kCopied) {
    slot->dropped = true;
    return true;
  }
  changed_.wait(lock, [&] { return slots_[id].state != State::kComing; });
  slot = &slots_[id];
  if (slot->state != State::kAway) hold(-slot->bytes);
  free_slot(id);
  return false;
}

void Session::held(Id id) {
  const std::lock_guard lock(mutex_);
  const auto* slot = find(id);
  if (slot && in_step(*slot)) watch_.step().saves[slot->save].held = true;
}

void Session::failed() {
  const std::lock_guard lock(mutex_);
  ++statistics_.failures;
  learner_.failed();
}

Statistics Session::statistics() {
  const std::lock_guard lock(mutex_);
  statistics_.given_back = watch_.given_back();
  statistics_.giving_ns = watch_.giving_ns();
  return statistics_;
}

KeptPlans Session::kept() {
  const std::lock_guard lock(mutex_);
  if (unused_ == 0) finish_step();
  return {.steps = learner_.kept(), .segments = segment_learner_.kept()};
}

void Session::restore(KeptPlans plans) {
  const std::lock_guard lock(mutex_);
  learner_.restore(std::move(plans.steps));
  segment_learner_.restore(plans.segments);
  statistics_.restored_steps = static_cast<int64_t>(learner_.known_steps());
}

void Session::refused(std::string why) {
  const std::lock_guard lock(mutex_);
  plans_refused_ = std::move(why);
}

std::string Session::plans_refused() {
  const std::lock_guard lock(mutex_);
  return plans_refused_;
}

StepLife Session::last_step() {
  const std::lock_guard lock(mutex_);
  return last_life_;
}

}  // namespace tierpilot::swap
