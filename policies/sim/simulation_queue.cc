// The coordinator's queue: which task is next, and asking the policy where it goes, as in
// coordinator/core/view.cc and dispatcher.cc.
#include <fmt/format.h>

#include <algorithm>

#include "policies/sim/simulation.h"

namespace tierpilot::sim {
namespace {

// How far a task that only waits for data may be overtaken in one look, as in the coordinator.
constexpr size_t kMaxOvertaken = 256;

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

uint32_t Simulation::next_task() {
  if (availability_seen_ != store_.availability()) head_.all_changed();
  availability_seen_ = store_.availability();
  size_t given_up = 0;
  for (size_t i = head_.known();; head_.set_known(i)) {
    // What is kept back is not looked at.
    const bool may_go_on = i + given_up < kMaxOvertaken + held_back_.size();
    if (i == head_.size()) {
      const uint32_t next = i == 0 ? queue_.first() : queue_.after(head_[i - 1].task);
      arrivals_matter_ = next == TaskQueue::kEnd || given_up > 0;
      if (next == TaskQueue::kEnd || !may_go_on) return kNone;
      head_.append(next);
    }
    const auto [task, waits_for] = head_[i];
    if (waits_for != BlockedHead::kUnknown) {
      ++i;
      continue;
    }
    if (held_back_.waits(task)) {
      head_[i++].waits_for = BlockedHead::kHeld;
      continue;
    }
    arrivals_matter_ = given_up > 0;
    if (!may_go_on) return kNone;
    const uint32_t missing = missing_dataset(task);
    if (missing == kNone) {
      if (view_.show(workload_.tasks[task]) == 0) return kNone;
      next_ = i;
      return task;
    }
    if (lost(task)) {
      head_.erase(i);
      give_up(task);
      ++given_up;
    } else {
      head_[i++].waits_for = missing;
    }
  }
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
  queue_.erase(task);
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
