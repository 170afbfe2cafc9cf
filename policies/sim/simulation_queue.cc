// The coordinator's queue: which task is next (policies/scheduling/queue_turns.h), and asking the
// policy where it goes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policies/scheduling/holding_rules.h"
#include "policies/sim/simulation.h"

namespace tierpilot::sim {
namespace {

constexpr QueuePlace kLast{HUGE_VAL, UINT64_MAX};
static_assert(BlockedHead::kUnknown == kNone, "who misses no dataset waits for nothing");

}  // namespace

void Simulation::pump() {
  while (work_available_ && failed_) {
    if (!held_back_.empty()) wake_held();
    const uint32_t task = next_task();
    if (task == kNone) {
      work_available_ = false;
      return;
    }
    failed_ = ask_policy(task);
  }
}

void Simulation::enqueue(uint32_t task) {
  const Task& what = workload_.tasks[task];
  const TaskFeatures features{.operations = what.told_operations(), .units = what.units};
  queue_.set_place(task, view_.pace().place_s(cluster_.coordinator.service_order, features,
                                              static_cast<double>(what.arrival_ns) * 1e-9));
  const QueuePlace place = queue_.place(task);
  if (!head_.insert(place)) queue_.insert(place);
  // Else none of those before it can be placed, and it would not be looked at.
  if (place < looked_until_ || availability_seen_ != store_.availability()) work_available_ = true;
}

// The queue as policies/scheduling/queue_turns.h wants it. What is known of its head is not looked
// at again.
class Simulation::QueueLook {
 public:
  explicit QueueLook(Simulation& all) : all_(all), at_(all.head_.known()) {}

  std::optional<QueuePlace> place() {
    if (all_.turns_.empty()) all_.head_.set_known(at_);
    if (at_ == all_.head_.size()) {
      if (all_.queue_.empty()) return std::nullopt;
      all_.head_.append(all_.queue_.take_first());
    }
    return all_.head_[at_].place;
  }
  std::optional<double> look() {
    auto& entry = all_.head_[at_];
    const uint32_t task = entry.task();
    if (entry.waits_for == BlockedHead::kUnknown) {
      entry.waits_for = all_.waits_for(task);
      if (entry.waits_for < BlockedHead::kHeld && all_.lost(task)) {
        all_.head_.erase(at_);
        all_.give_up(task);
        gave_up_ = true;
        return std::nullopt;
      }
    }
    ++at_;
    if (entry.waits_for != BlockedHead::kUnknown) return std::nullopt;
    return all_.far_s(task);
  }
  bool gave_up() const { return gave_up_; }

 private:
  Simulation& all_;
  size_t at_;
  bool gave_up_ = false;
};

uint32_t Simulation::next_task() {
  if (availability_seen_ != store_.availability()) head_.all_changed();
  availability_seen_ = store_.availability();
  head_.cut(2 * (QueueTurns::kMostLookedAt + held_back_.size()), queue_);
  QueueLook queue(*this);
  turns_.begin(held_back_.size(), head_.known());
  const auto turn = turns_.next(queue);
  // Who was given up makes room for others to be looked at.
  looked_until_ = queue.gave_up() ? kLast : turns_.cut_off().value_or(kLast);
  if (!turn) return kNone;
  if (!queue.gave_up()) looked_until_ = std::min(looked_until_, QueuePlace{turn->at_s, 0});
  const auto task = static_cast<uint32_t>(turn->place.second);
  next_ = head_.index_of(turn->place);
  return view_.show(workload_.tasks[task]) > 0 ? task : kNone;
}

double Simulation::far_s(uint32_t task) const {
  uint64_t far_bytes = 0;
  for (const DatasetUse& use : workload_.uses_of(workload_.tasks[task])) {
    const auto& holders = store_.holders(use.dataset);
    const bool near = std::any_of(holders.begin(), holders.end(), [&](const auto& holder) {
      return holder.fast && view_.has_room(holder.node);
    });
    if (!near) far_bytes += store_.bytes(use.dataset);
  }
  return view_.pace().far_s(cluster_.coordinator.service_order, far_bytes);
}

uint32_t Simulation::waits_for(uint32_t task) const {
  return held_back_.waits(task) ? BlockedHead::kHeld : missing_dataset(task);
}

uint32_t Simulation::missing_dataset(uint32_t task) const {
  for (const DatasetUse& use : workload_.uses_of(workload_.tasks[task]))
    if (store_.holders(use.dataset).empty() || (use.write && writer_[use.dataset] != kNone))
      return use.dataset;
  return kNone;
}

bool Simulation::lost(uint32_t task) const {
  const auto uses = workload_.uses_of(workload_.tasks[task]);
  return std::any_of(uses.begin(), uses.end(), [&](const DatasetUse& use) {
    return store_.lost(use.dataset) && writer_[use.dataset] == kNone;
  });
}

void Simulation::give_up(uint32_t task) {
  forget_held(task);
  ++recorder_.counts.failed;
  end(task);
}

Status Simulation::ask_policy(uint32_t task) {
  State& state = states_[task];
  const Attempt attempt{task, state.attempt + 1U};
  if (options_.listener) options_.listener->asks(attempt);
  view_.allow_holding(holds_ && may_be_held(held_back_, task, now_ns_, view_.up_count()));
  const View& view = view_.view();
  const Decision decision = policy_.decide(view);
  if (is_kept_back(view, decision)) {
    hold(task, view, decision.held_for);
    return {};
  }
  if (!is_candidate(view, decision.node))
    return fail(ErrorCode::kInvalid, fmt::format("task {}: the policy chose no candidate", task));
  ++recorder_.counts.decisions;
  ++state.attempt;
  if (options_.listener) options_.listener->decided(attempt, view, decision);
  place(task, view, decision.node);
  return {};
}

void Simulation::set_writer(uint32_t task, uint32_t from, uint32_t to) {
  for (const DatasetUse& use : workload_.uses_of(workload_.tasks[task]))
    if (use.write && writer_[use.dataset] == from) {
      writer_[use.dataset] = to;
      if (to != kNone) continue;
      store_.lost(use.dataset) ? head_.all_changed() : head_.changed(use.dataset);
    }
}

}  // namespace tierpilot::sim
