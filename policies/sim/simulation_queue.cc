// The coordinator's queue: which task is next, and asking the policy where it goes, as in
// coordinator/core/decisions/view.cc and dispatcher.cc.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policies/sim/simulation.h"

namespace tierpilot::sim {
namespace {

// How far a task that only waits for data may be overtaken in one look, as in the coordinator.
constexpr size_t kMaxOvertaken = 256;

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

// Those whose data is at hand come before others of about the same place, see service_order.h.
uint32_t Simulation::next_task() {
  if (availability_seen_ != store_.availability()) head_.all_changed();
  availability_seen_ = store_.availability();
  uint32_t best = kNone;
  double least_s = HUGE_VAL;
  size_t given_up = 0;
  looked_until_ = kLast;
  head_.cut(2 * (kMaxOvertaken + held_back_.size()), queue_);
  for (size_t i = head_.known();;) {
    if (best == kNone) head_.set_known(i);
    if (i == head_.size()) {
      if (queue_.empty()) break;
      head_.append(queue_.take_first());
    }
    auto& [place, waits_for] = head_[i];
    if (place.first >= least_s) break;
    // What is kept back is not looked at.
    if (i + given_up >= kMaxOvertaken + held_back_.size()) {
      if (given_up == 0) looked_until_ = place;
      break;
    }
    const uint32_t task = head_[i].task();
    if (waits_for == BlockedHead::kUnknown) {
      waits_for = held_back_.waits(task) ? BlockedHead::kHeld : missing_dataset(task);
      if (waits_for < BlockedHead::kHeld && lost(task)) {
        head_.erase(i);
        give_up(task);
        ++given_up;
        continue;
      }
    }
    if (waits_for == BlockedHead::kUnknown) {
      const double cost_s = place.first + far_s(task);
      if (cost_s < least_s) least_s = cost_s, best = task, next_ = i;
    }
    ++i;
  }
  if (best == kNone) return kNone;
  if (given_up == 0) looked_until_ = std::min(looked_until_, QueuePlace{least_s, 0});
  return view_.show(workload_.tasks[best]) > 0 ? best : kNone;
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
  const auto* held = held_back_.find(task);
  view_.allow_holding(holds_ && (held ? now_ns_ < held->until_ns
                                      : held_back_.size() < HeldTasks::most(held_.size())));
  const View& view = view_.view();
  if (observes_) seen_ = observe(view, options_.features);
  const Decision decision = policy_.decide(view, seen_);
  const size_t full = decision.held_for;
  if (decision.node == kNoNode && full < view.nodes.size() && view.nodes[full].full &&
      view.may_hold) {
    hold(task, view, full);
    return {};
  }
  if (decision.node >= view.nodes.size() || !view.nodes[decision.node].candidate)
    return fail(ErrorCode::kInvalid, fmt::format("task {}: the policy chose no candidate", task));
  ++recorder_.counts.decisions;
  ++state.attempt;
  if (options_.listener) options_.listener->decided(attempt, view, seen_, decision);
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
