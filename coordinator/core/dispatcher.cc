#include "coordinator/core/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <tuple>

#include "base/log.h"
#include "coordinator/store/records.h"
#include "policies/heuristics.h"

namespace tierpilot {
namespace {

// A decision among a hundred nodes is explained by its best few, and is written at every task.
constexpr size_t kMaxRecorded = 16;

// Attempts are few; the low bits hold them so that an id is never used twice.
uint64_t decision_id(AttemptId attempt) {
  return attempt.task << 12 | (attempt.attempt & 0xfff);
}

// The chosen node first, then the best by the policy's score, then those that were no candidates.
std::vector<size_t> worth_recording(const View& view, const Decision& decision) {
  std::vector<size_t> order(view.nodes.size());
  std::iota(order.begin(), order.end(), 0U);
  if (order.size() <= kMaxRecorded) return order;
  const auto rank = [&](size_t i) {
    const double q = i < decision.q.size() ? decision.q[i].value_or(-HUGE_VAL) : -HUGE_VAL;
    return std::tuple(i != decision.node, !view.nodes[i].candidate, -q, i);
  };
  std::partial_sort(order.begin(), order.begin() + kMaxRecorded, order.end(),
                    [&](size_t a, size_t b) { return rank(a) < rank(b); });
  order.resize(kMaxRecorded);
  std::sort(order.begin(), order.end());
  return order;
}

DecisionRecord describe(const PlacementView& placement, const Decision& decision) {
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
  for (const size_t i : worth_recording(placement.view, decision)) {
    const auto& node = placement.view.nodes[i];
    record.candidates.push_back({placement.names[i], node.candidate,
                                 i < decision.q.size() ? decision.q[i] : std::nullopt,
                                 node.free_fast_bytes, node.held_fast_bytes, node.held_slow_bytes,
                                 node.assigned, node.units});
  }
  return record;
}

bool is_candidate(const PlacementView& placement, size_t node) {
  return node < placement.view.nodes.size() && placement.view.nodes[node].candidate;
}

}  // namespace

void Dispatcher::pump() {
  if (open_ || !state_.store.trouble().empty()) return;
  auto next = next_task(state_);
  if (next.task) ask(*next.task, std::move(next.placement));
}

void Dispatcher::ask(Task& task, PlacementView placement) {
  const AttemptId attempt{task.id, task.attempt + 1};
  open_ = Open{decision_id(attempt), attempt, std::move(placement), state_.clock.boot_ns()};
  const uint64_t id = open_->id;
  host_.decide(id, open_->placement.view, [this](PolicyHost::Decided decided) {
    hooks_.post([this, decided = std::move(decided)] { answered(decided); });
  });
  hooks_.after(state_.settings.decision_deadline_us, [this, id] { deadline_passed(id); });
}

void Dispatcher::answered(const PolicyHost::Decided& decided) {
  if (!open_ || open_->id != decided.id) return;  // too late: the heuristic has decided
  Open open = std::move(*open_);
  open_.reset();
  if (!is_candidate(open.placement, decided.decision.node))
    return fall_back(std::move(open),
                     fmt::format("policy '{}' chose no candidate", decided.policy));
  auto record = describe(open.placement, decided.decision);
  record.policy = decided.policy;
  record.encoded = decided.decision.seen;
  record.decide_ns = decided.decide_ns;
  place(open, decided.decision, std::move(record));
}

void Dispatcher::deadline_passed(uint64_t id) {
  if (!open_ || open_->id != id) return;
  Open open = std::move(*open_);
  open_.reset();
  fall_back(std::move(open), fmt::format("no decision within {:.1f} ms",
                                         state_.settings.decision_deadline_us / 1e3));
}

void Dispatcher::fall_back(Open open, const std::string& why) {
  const auto decision = fallback_decide(open.placement.view);
  state_.scores.fell_back(host_.active());
  auto record = describe(open.placement, decision);
  record.policy = host_.active();
  record.fallback = why;
  record.decide_ns = state_.clock.boot_ns() - open.asked_ns;
  host_.override_action(open.id, open.placement.view, decision.node);
  place(open, decision, std::move(record));
}

void Dispatcher::place(const Open& open, const Decision& decision, DecisionRecord record) {
  auto* task = state_.tasks.find(open.attempt.task);
  auto* node = is_candidate(open.placement, decision.node)
                   ? state_.registry.find(open.placement.names[decision.node])
                   : nullptr;
  // While the policy thought, the task may have been cancelled or the node may have gone.
  const bool valid = task && task->state == TaskState::kQueued &&
                     task->attempt + 1 == open.attempt.attempt && node && node->can_be_asked() &&
                     state_.catalog.blocked_by(*task).empty();
  if (!valid) {
    host_.abandon(open.id);
    return pump();
  }
  state_.scores.decided(record.policy, record.decide_ns);
  record.attempt = open.attempt;
  record.node = node->facts.name;
  record.at_ms = state_.clock.wall_ms();
  const uint32_t total = state_.registry.total_units();
  record.utilisation = total ? static_cast<double>(state_.registry.busy_units()) / total : 0;

  state_.tasks.advance(*task, TaskState::kAssigned);
  task->attempt = open.attempt.attempt;
  task->node = node->facts.name;
  task->policy = record.policy;
  task->reason.clear();
  state_.registry.assign(*node, open.attempt, task->spec.units);
  const auto& chosen = open.placement.view.nodes[decision.node];
  const auto& wanted = open.placement.view.task;
  node->count(*task, wanted.operations,
              wanted.data_bytes - std::min(wanted.data_bytes, chosen.held_fast_bytes));
  decided_ns_[open.attempt] = state_.clock.boot_ns();
  state_.catalog.lock_writes(*task);
  auto assignment = std::make_shared<Assignment>(make_assignment(*task, node->facts.name));
  auto shared = std::make_shared<const std::pair<Task, DecisionRecord>>(*task, record);
  unrewarded_[open.attempt] = std::move(record);
  state_.store.write(
      [shared](Db& db) -> Status {
        if (auto put = records::update_task(db, shared->first); !put) return put;
        return records::put_decision(db, shared->second);
      },
      [this, assignment, name = node->facts.name](Status status) {
        auto* written = state_.tasks.find(assignment->attempt.task);
        const bool still = written && written->state == TaskState::kAssigned &&
                           written->attempt == assignment->attempt.attempt;
        if (!still) return;
        if (!status) return lifecycle_->unassign(*written, status.error().message);
        send(*assignment, name);
      });
  pump();
}

Assignment Dispatcher::make_assignment(Task& task, const std::string& node) const {
  Assignment assignment{{task.id, task.attempt}, task.spec, {}};
  task.data_versions.clear();
  for (const auto& use : task.spec.datasets) {
    const auto& entry = *state_.catalog.find(use.dataset);
    task.data_versions[use.dataset] = entry.dataset.version;
    DatasetNeed need{use.dataset, entry.dataset.version, entry.dataset.bytes, use.write, {}};
    // Those that have it in fast memory answer fastest.
    for (const bool fast : {true, false})
      for (const auto& [name, replica] : entry.replicas) {
        const auto* holder = state_.registry.find(name);
        if (name != node && replica.in_fast == fast && holder && holder->can_be_asked())
          need.sources.push_back(holder->facts.data_address);
      }
    assignment.datasets.push_back(std::move(need));
  }
  return assignment;
}

void Dispatcher::send(const Assignment& assignment, const std::string& name) {
  auto* node = state_.registry.find(name);
  // Away: when it comes back it says that it does not hold the attempt, or its lease ends.
  if (!node || !node->link) return;
  node->link->start(assignment, [this, attempt = assignment.attempt, name](Status status) {
    if (status || status.error().code == ErrorCode::kUnreachable) return;
    lifecycle_->fail_assigned(
        attempt, fmt::format("node '{}' refused it: {}", name, status.error().message));
  });
  // A cancel that came while the assignment was on its way to the disk found nothing on the node.
  const auto* task = state_.tasks.find(assignment.attempt.task);
  if (task && task->cancel_asked) node->link->cancel(assignment.attempt, "cancelled");
}

void Dispatcher::served(AttemptId attempt, const ServedData& data) {
  const auto found = unrewarded_.find(attempt);
  if (found == unrewarded_.end()) return;
  auto record = std::move(found->second);
  unrewarded_.erase(found);
  const uint32_t total = state_.registry.total_units();
  ServiceMeasure measure;
  measure.utilisation = total ? static_cast<double>(state_.registry.busy_units()) / total : 0;
  measure.service_ns = static_cast<double>(std::max<uint64_t>(data.latency_ns, 1));
  measure.reference_ns = static_cast<double>(data.reference_ns);  // 0: not measured there
  // A clean copy that is dropped moves no byte: only what was written is paid for.
  measure.evicted_bytes = data.evicted_written_bytes;
  measure.evict_bytes_per_s = data.evict_gb_per_s.value.value_or(0) * 1e9;
  auto& reward = record.reward;
  reward.utilisation = measure.utilisation;
  reward.latency_ns = data.latency_ns;
  reward.reference_ns = data.reference_ns;
  reward.evicted_bytes = data.evicted_written_bytes;
  reward.evict_gb_per_s = data.evict_gb_per_s;
  if (const auto parts = compute_reward(measure, state_.settings.reward)) {
    reward.reward = parts->reward;
    reward.latency_term = parts->latency_term;
    reward.penalty_term = parts->penalty_term;
    state_.scores.rewarded(record.policy, parts->reward);
    host_.outcome(decision_id(attempt), *parts);
  } else {
    spdlog::debug("task {}: no reward: {}", attempt.task, parts.error().message);
  }
  state_.store.write([attempt, reward](Db& db) { return records::put_reward(db, attempt, reward); },
                     nullptr);
}

void Dispatcher::ended(AttemptId attempt, bool succeeded) {
  unrewarded_.erase(attempt);
  const auto decided = decided_ns_.extract(attempt);
  // Decided by an earlier coordinator: how long ago is not known any more.
  if (decided.empty() || !succeeded) return host_.abandon(decision_id(attempt));
  const auto took_ns = static_cast<double>(state_.clock.boot_ns() - decided.mapped());
  host_.finished(decision_id(attempt), took_ns / 1e9);
}

}  // namespace tierpilot
