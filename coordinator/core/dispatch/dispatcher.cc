#include "coordinator/core/dispatch/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "coordinator/core/decisions/assignment.h"
#include "coordinator/core/decisions/handover.h"
#include "coordinator/core/gangs/checkpoint_choice.h"
#include "coordinator/core/gangs/gang_life.h"
#include "coordinator/core/set_while.h"
#include "coordinator/store/records.h"
#include "policies/placement/fallback.h"
#include "policies/scheduling/holding_rules.h"

namespace tierpilot {
namespace {

// Tasks placed in one go; before more, the loop serves what has come meanwhile.
constexpr int kMostAtOnce = 16;

// At most so many: a decision is written at every task. The chosen node first, then the best by the
// policy's score, then those that were no candidates.
std::vector<size_t> worth_recording(const View& view, const Decision& decision, size_t most) {
  std::vector<size_t> order(view.nodes.size());
  std::iota(order.begin(), order.end(), 0U);
  if (order.size() <= most) return order;
  const auto rank = [&](size_t i) {
    const double q = i < decision.q.size() ? decision.q[i].value_or(-HUGE_VAL) : -HUGE_VAL;
    return std::tuple(i != decision.node, !view.nodes[i].candidate, -q, i);
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(most), order.end(),
                    [&](size_t a, size_t b) { return rank(a) < rank(b); });
  order.resize(most);
  std::sort(order.begin(), order.end());
  return order;
}

DecisionRecord describe(const PlacementView& placement, const Decision& decision, size_t most) {
  DecisionRecord record;
  record.explored = decision.explored;
  record.reason = decision.reason;
  record.weights_version = decision.weights_version;
  record.operations = placement.view.task.operations;
  record.data_bytes = placement.view.task.data_bytes;
  record.writes = placement.view.task.writes;
  record.considered = static_cast<uint32_t>(placement.view.nodes.size());
  record.eligible =
      static_cast<uint32_t>(std::count_if(placement.view.nodes.begin(), placement.view.nodes.end(),
                                          [](const NodeState& node) { return node.candidate; }));
  for (const size_t i : worth_recording(placement.view, decision, most)) {
    const auto& node = placement.view.nodes[i];
    record.candidates.push_back({placement.records[i]->facts.name, node.candidate,
                                 i < decision.q.size() ? decision.q[i] : std::nullopt,
                                 node.free_fast_bytes, node.held_fast_bytes, node.held_slow_bytes,
                                 node.assigned, node.units});
  }
  return record;
}

// The node that it would have the task on, now or later.
size_t wanted_by(const Decision& decision) {
  return decision.node != kNoNode ? decision.node : decision.held_for;
}

}  // namespace

void Dispatcher::pump() {
  if (pumping_ || !state_.may_place()) return;  // what is placed below pumps again
  const SetWhile pumping(pumping_);
  if (look_from_ && state_.clock.boot_ns() >= look_at_all_ns_) look_from_.reset();
  for (int placed = 0; !open_ && state_.store.trouble().empty(); ++placed) {
    if (placed == kMostAtOnce) {
      go_on_later();
      break;
    }
    holding_.wake();
    auto next = next_task(state_, gangs_->policies(), holding_.allowed(host_.active()), look_from_);
    if (next.beyond) {
      look_further(std::move(*next.beyond));
      continue;
    }
    looks_since_ns_.reset();
    if (next.gang) {
      gangs_->place(*next.task, *next.gang);
      continue;
    }
    if (!next.task || !dispatch(*next.task, std::move(next.placement))) break;
  }
}

// What has changed for those before is seen a little later: without looking at all of them for each
// task that is placed.
void Dispatcher::look_further(LookFrom from) {
  constexpr int64_t kPause_ns = 100'000'000, kLongestPause_ns = 5'000'000'000;
  constexpr int64_t kPausePerLook = 10;
  const int64_t now_ns = state_.clock.boot_ns();
  if (!look_from_) looks_since_ns_ = now_ns;
  look_from_ = std::move(from);
  if (looks_since_ns_)
    look_at_all_ns_ = now_ns + std::clamp(kPausePerLook * (now_ns - *looks_since_ns_), kPause_ns,
                                          kLongestPause_ns);
  look_at_all_later();
}

void Dispatcher::look_at_all_later() {
  if (std::exchange(watching_looks_, true)) return;
  const int64_t left_ns = look_at_all_ns_ - state_.clock.boot_ns();
  hooks_.after(std::max<int64_t>(left_ns, 0) / 1000 + 1, [this] {
    watching_looks_ = false;
    if (!look_from_) return;
    if (state_.clock.boot_ns() < look_at_all_ns_)
      look_at_all_later();
    else
      pump();
  });
}

void Dispatcher::go_on_later() {
  if (std::exchange(goes_on_, true)) return;
  hooks_.post([this] {
    goes_on_ = false;
    pump();
  });
}

bool Dispatcher::dispatch(Task& task, PlacementView placement) {
  const AttemptId attempt{task.id, state_.next_attempt(task)};
  const int64_t now_ns = state_.clock.boot_ns();
  const auto [turn, since_ns] = holding_.asked(task.id, placement.view);
  placement.view.may_hold = holding_.may_be_held(task.id);
  OpenDecision open{
      ++requests_, attempt, std::make_shared<const PlacementView>(std::move(placement)),
      turn,        now_ns,  since_ns};
  if (!open.turn.asks())
    return fall_back(open, open.turn.ticket.arm == Arm::kControl
                               ? "a control decision, to compare with"
                               : fmt::format("policy '{}' is deposed", open.turn.policy));
  open_ = std::move(open);
  if (const auto decided = host_.decide_at_once(open_->request, open_->view())) {
    answered(*decided);
    return task.state == TaskState::kAssigned || state_.held.waits(task.id);
  }
  host_.decide(open_->request, open_->shared_view(), [this](PolicyHost::Decided decided) {
    hooks_.post([this, decided = std::move(decided)] { answered(decided); });
  });
  watch_deadline(state_.settings.decision_deadline_us);
  return true;
}

void Dispatcher::answered(const PolicyHost::Decided& decided) {
  if (!open_ || open_->request != decided.request) return;  // too late: the heuristic has decided
  const OpenDecision open = std::move(*open_);
  open_.reset();
  if (decided.policy != open.turn.policy || !still_decides(host_, oversight_, open.turn))
    return pump();
  const Decision& decision = decided.decision;
  const bool usable =
      is_candidate(open.view(), decision.node) || is_kept_back(open.view(), decision);
  const auto fault = usable || decision.fault != DecisionFault::kNone ? decision.fault
                                                                      : DecisionFault::kNoCandidate;
  oversight_.answered(open.turn, fault);
  if (fault == DecisionFault::kNoCandidate)
    count_fall_back(open, fmt::format("policy '{}' chose no candidate", decided.policy));
  else if (fault != DecisionFault::kNone)
    count_fall_back(open, decision.reason);
  else if (open.turn.ticket.arm == Arm::kPolicy && open.turn.mode == PolicyMode::kEnforce)
    carry_out(open, decided);
  else
    take_advice(open, decided);
  pump();
}

void Dispatcher::watch_deadline(int64_t in_us) {
  if (std::exchange(watching_deadline_, true)) return;
  hooks_.after(in_us, [this] {
    watching_deadline_ = false;
    deadline_passed();
  });
}

void Dispatcher::deadline_passed() {
  if (!open_) return;
  const int64_t left_us =
      state_.settings.decision_deadline_us - (state_.clock.boot_ns() - open_->asked_ns) / 1000;
  if (left_us > 0) return watch_deadline(left_us);
  const OpenDecision open = std::move(*open_);
  open_.reset();
  host_.dismiss(open.request);
  if (!still_decides(host_, oversight_, open.turn)) return pump();
  oversight_.answered(open.turn, DecisionFault::kSlow);
  count_fall_back(open, fmt::format("no decision within {:.1f} ms",
                                    state_.settings.decision_deadline_us / 1e3));
  pump();
}

void Dispatcher::take_advice(const OpenDecision& open, const PolicyHost::Decided& decided) {
  const View& view = open.view();
  const size_t wanted = wanted_by(decided.decision);
  const auto heuristic = fallback_decide(view);
  const size_t own = wanted_by(heuristic);
  const double later = *heuristic.q[wanted] / *heuristic.q[own] - 1;
  const bool acts = open.turn.ticket.arm == Arm::kPolicy;
  const bool follows = acts && later <= oversight_.settings().advice_band;
  oversight_.compared(open.turn, wanted != own, follows);
  if (follows) return carry_out(open, decided);
  fall_back(open,
            acts ? fmt::format("advice: the heuristic finds the policy's choice {:.0f} % dearer",
                               later * 100)
                 : fmt::format("policy '{}' is {}", decided.policy,
                               open.turn.mode == PolicyMode::kShadow ? "in shadow" : "deposed"),
            wanted);
}

void Dispatcher::carry_out(const OpenDecision& open, const PolicyHost::Decided& decided) {
  if (is_kept_back(open.view(), decided.decision)) return holding_.hold(open, decided.decision);
  auto record = describe(*open.placement, decided.decision, state_.settings.recorded_nodes);
  record.encoded = decided.decision.seen;
  record.decide_ns = decided.decide_ns;
  place(open, decided.decision, std::move(record));
}

void Dispatcher::count_fall_back(const OpenDecision& open, const std::string& why) {
  state_.scores.fell_back(open.turn.policy);
  fall_back(open, why);
}

bool Dispatcher::fall_back(const OpenDecision& open, const std::string& why, size_t proposed) {
  const auto decision = fallback_decide(open.view());
  if (is_kept_back(open.view(), decision)) {
    holding_.hold(open, decision);
    return state_.held.waits(open.attempt.task);
  }
  auto record = describe(*open.placement, decision, state_.settings.recorded_nodes);
  record.fallback = why;
  if (proposed != kNoNode) record.proposed = open.placement->records[proposed]->facts.name;
  record.decide_ns = state_.clock.boot_ns() - open.asked_ns;
  return place(open, decision, std::move(record));
}

bool Dispatcher::place(const OpenDecision& open, const Decision& decision, DecisionRecord record) {
  auto* task = state_.tasks.find(open.attempt.task);
  auto* node = is_candidate(open.view(), decision.node)
                   ? state_.registry.find(open.placement->records[decision.node]->facts.name)
                   : nullptr;
  // While the policy thought, the task may have been cancelled or the node may have gone.
  const bool valid = task && task->state == TaskState::kQueued &&
                     state_.next_attempt(*task) == open.attempt.attempt && node &&
                     node->takes(task->id) && node->has_swap_room(task->spec.swap_room_bytes) &&
                     state_.blocked_by(*task).empty();
  if (!valid) return false;
  host_.took(attempt_key(open.attempt), open.shared_view(), decision.node);
  record.policy = open.turn.policy;
  if (oversight_.guard(record.policy)) {
    record.mode = open.turn.mode;
    record.arm = open.turn.ticket.arm;
  }
  state_.scores.decided(record.policy, record.decide_ns);
  record.attempt = open.attempt;
  record.node = node->facts.name;
  record.at_ms = state_.clock.wall_ms();
  const uint32_t total = state_.registry.summary().total_units;
  record.utilisation =
      total ? static_cast<double>(state_.registry.summary().busy_units) / total : 0;

  state_.tasks.advance(*task, TaskState::kAssigned);
  holding_.end(*node, record);
  task->attempt = open.attempt.attempt;
  task->node = node->facts.name;
  task->policy = record.policy;
  task->reason.clear();
  task->exit.reset();
  state_.registry.assign(*node, open.attempt, task->spec.units, task->spec.swap_room_bytes);
  const auto& chosen = open.view().nodes[decision.node];
  const auto& wanted = open.view().task;
  node->count(*task, wanted.operations,
              wanted.data_bytes - std::min(wanted.data_bytes, chosen.held_fast_bytes));
  credits_.placed(open.attempt, {open.turn, open.first_asked_ns, state_.clock.boot_ns(),
                                 !record.fallback.empty()});
  state_.catalog.lock_writes(*task);
  auto assignment = std::make_shared<Assignment>(
      make_assignment(state_, *task, node->facts.name, newest_checkpoint(state_, task->id)));
  auto shared = std::make_shared<const std::pair<Task, DecisionRecord>>(*task, std::move(record));
  hand_over_once_written(state_, *lifecycle_, std::move(assignment), std::move(shared),
                         [this] { pump(); });
  return true;
}

}  // namespace tierpilot
