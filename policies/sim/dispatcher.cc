#include "policies/sim/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "policies/scheduling/holding_rules.h"

namespace tierpilot::sim {

Dispatcher::Dispatcher(const ClusterSpec& cluster, const Workload& workload, Policy& policy,
                       const ReplicaStore& store, QueuePlaces& places, ClusterView& view,
                       AttemptTable& table, Gangs& gangs, Attempts& attempts, EventQueue& events,
                       Outcomes& outcomes, gang::Placer& placer)
    : workload_(workload),
      policy_(policy),
      holds_(may_hold_tasks(cluster, policy)),
      gang_patience_ns_(after_s(0, cluster.coordinator.gang_patience_s)),
      view_(view),
      table_(table),
      gangs_(gangs),
      attempts_(attempts),
      events_(events),
      outcomes_(outcomes),
      places_(places),
      writers_(workload, store),
      kept_back_(view.nodes(), cluster.coordinator.backlog_units),
      waiting_(cluster, workload, store, view.nodes(), writers_, kept_back_, places),
      gang_room_(cluster, view.nodes(), placer) {}

bool Dispatcher::can_ever_run(uint32_t task) const {
  const Task& what = workload_.tasks[task];
  const Gang* gang = gangs_.of(task);
  return gang ? gang_room_.could_ever_hold(view_.shape_of(what), gang->ranks)
              : view_.can_ever_take(what);
}

inline Status Dispatcher::decide(int64_t now_ns, uint32_t task) {
  const Attempt attempt{task, table_[task].attempt + 1U};
  outcomes_.asks(attempt);
  view_.allow_holding(holds_ && kept_back_.may_hold(task, now_ns));
  const View& view = view_.view();
  const Decision decision = policy_.decide(view);
  if (is_kept_back(view, decision)) {
    hold(now_ns, task, view, decision.held_for);
    return {};
  }
  if (!is_candidate(view, decision.node))
    return fail(ErrorCode::kInvalid, fmt::format("task {}: the policy chose no candidate", task));
  outcomes_.decided(attempt, view, decision);
  place(now_ns, task, view, decision.node);
  return {};
}

Status Dispatcher::work(int64_t now_ns) {
  while (has_work_) {
    kept_back_.wake_for_room([&](uint64_t task) { waiting_.woken(task); });
    const uint32_t task = waiting_.next();
    for (const uint32_t lost : waiting_.given_up()) give_up(lost);
    const Gang* gang = task == kNone ? nullptr : gangs_.of(task);
    if (task == kNone ||
        (gang ? !place_gang(now_ns, *gang) : view_.show(workload_.tasks[task]) == 0)) {
      has_work_ = false;
      break;
    }
    if (gang) continue;
    if (auto status = decide(now_ns, task); !status) return status;
  }
  return {};
}

bool Dispatcher::place_gang(int64_t now_ns, const Gang& gang) {
  const Task& first = workload_.tasks[gang.first];
  const TaskShape shape = view_.shape_of(first);
  const auto nodes = gang_room_.place(now_ns, shape, gang.ranks,
                                      first.told_operations() / kReferenceOperationsPerSecond);
  if (nodes.empty()) {
    if (now_ns - first.arrival_ns > gang_patience_ns_ && gang_room_.could_hold(shape, gang.ranks))
      return false;
    waiting_.pass_next();
    return true;
  }
  waiting_.take_next();
  gangs_.begin(gang.first);
  for (uint32_t rank = 0; rank < gang.ranks; ++rank) {
    const uint32_t task = gang.first + rank;
    places_.set(task, places_.of(gang.first).first);
    writers_.begin(task);
    attempts_.begin(now_ns, task, nodes[rank],
                    view_.missing_bytes(workload_.tasks[task], nodes[rank]));
  }
  return true;
}

void Dispatcher::hold(int64_t now_ns, uint32_t task, const View& view, size_t full) {
  outcomes_.kept_back();
  if (const auto until_ns = kept_back_.hold(places_.of(task), view, full, now_ns))
    events_.push(*until_ns, EventKind::kHeldLongest, task, table_.renew(task));
  waiting_.keep_next_back();
}

void Dispatcher::place(int64_t now_ns, uint32_t task, const View& view, size_t node) {
  const NodeState& chosen = view.nodes[node];
  const uint64_t missing_bytes =
      view.task.data_bytes - std::min(view.task.data_bytes, chosen.held_fast_bytes);
  const uint32_t slot = chosen.slot;  // slots are the nodes' numbers
  waiting_.take_next();
  kept_back_.placed(task);
  writers_.begin(task);
  attempts_.begin(now_ns, task, slot, missing_bytes);
}

void Dispatcher::give_up(uint32_t task) {
  kept_back_.forget(task);
  for_each_rank(gangs_.of(task), task, [&](uint32_t rank) { table_.end(rank); });
  outcomes_.failed();
}

void Dispatcher::released(uint32_t task, uint32_t node) {
  writers_.end(task, [&](uint32_t dataset) { waiting_.freed(dataset); });
  node_has_room(node);
}

void Dispatcher::node_has_room(uint32_t node) {
  kept_back_.room(node);
  room_grew();
}

void Dispatcher::room_grew() {
  gang_room_.grew();
  waiting_.room_grew();
  look_again();
}

void Dispatcher::node_failed(uint32_t node) {
  for (const uint64_t task : kept_back_.wake_all(node)) waiting_.woken(task);
  look_again();  // what needs lost data fails
}

void Dispatcher::held_longest(uint32_t task) {
  if (!kept_back_.wake(task)) return;
  waiting_.woken(task);
  look_again();
}

}  // namespace tierpilot::sim
