#include "policies/sim/evaluation/guarded_policy.h"

#include <utility>

#include "base/random.h"
#include "policies/placement/fallback.h"
#include "policies/scheduling/estimate.h"

namespace tierpilot::sim {

GuardedPolicy::GuardedPolicy(Player player, const GuardSettings& settings, uint64_t seed)
    : player_(std::move(player)),
      guard_(settings, placement_measures()),
      generator_(derived_seed(seed, "guard")) {
  player_.policy->explain(false);
}

void GuardedPolicy::asks(Attempt attempt) {
  task_ = attempt.task;
  if (player_.learner) player_.learner->asks(attempt);
}

// A task that was kept back stays with the arm that did so, or the arms would be judged by unlike
// tasks; not once the policy's standing has changed.
GuardedPolicy::Turn GuardedPolicy::next_turn(const View& view) {
  const Guard::Ticket ticket = guard_.next(std::uniform_real_distribution<>()(generator_));
  const auto held = held_.extract(task_);
  if (!held.empty() && held.mapped().ticket.era == ticket.era) return held.mapped();
  return {ticket, best_finish_s(view), !held.empty()};
}

Decision GuardedPolicy::decide(const View& view) {
  turn_ = next_turn(view);
  Decision decision = choose(view);
  if (decision.held_for != kNoNode) held_[task_] = turn_;
  return decision;
}

Decision GuardedPolicy::choose(const View& view) {
  switch (turn_.ticket.arm) {
    case Arm::kPolicy:
      return ask(view);
    case Arm::kShadow:
      ask(view);
      ++tally_.alone;
      break;
    case Arm::kAlone:
      ++tally_.alone;
      break;
    case Arm::kControl:
      ++tally_.control;
      break;
  }
  return fallback_decide(view);
}

// A policy's answer with a fault is the fallback's choice already.
Decision GuardedPolicy::ask(const View& view) {
  Decision decision = player_.policy->decide(view);
  guard_.answered(decision.fault);
  count_events();
  tally_.faults += turn_.ticket.arm == Arm::kPolicy && decision.fault != DecisionFault::kNone;
  return decision;
}

void GuardedPolicy::decided(Attempt attempt, const View& view, const Decision& decision) {
  placed_[attempt.task] = turn_;
  if (player_.learner) player_.learner->decided(attempt, view, decision);
}

void GuardedPolicy::served(Attempt attempt, const ServiceMeasure& measure,
                           const RewardParts& reward) {
  if (player_.learner) player_.learner->served(attempt, measure, reward);
  const auto placed = placed_.find(attempt.task);
  if (placed == placed_.end()) return;
  guard_.measured(kReward, placed->second.ticket, reward.reward);
  count_events();
}

// The next decision about the task takes its place.
void GuardedPolicy::abandoned(Attempt attempt) {
  if (player_.learner) player_.learner->abandoned(attempt);
}

void GuardedPolicy::finished(Attempt attempt, const TaskTimes& times) {
  if (player_.learner) player_.learner->finished(attempt, times);
  const auto placed = placed_.extract(attempt.task);
  if (placed.empty()) return;
  const Turn& turn = placed.mapped();
  if (const auto relative =
          relative_.of(turn.anew ? times.since_decision_s : times.since_asked_s, turn.estimate_s)) {
    guard_.measured(kResponse, turn.ticket, *relative);
    count_events();
  }
}

void GuardedPolicy::count_events() {
  for (const auto& event : guard_.take_events()) tally_.deposed += event.what == "deposed";
}

}  // namespace tierpilot::sim
