#include "coordinator/core/dispatch/next_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "policies/scheduling/queue_turns.h"

namespace tierpilot {
namespace {

bool has_room(const ClusterState& state, const NodeRecord& node) {
  return node.has_units(state.settings.backlog_units);
}

// By a node that could take it else: others must not wait for that.
bool is_kept_off(const ClusterState& state, const Task& task) {
  if (task.faults == 0) return false;
  const auto& up = state.registry.up();
  return std::any_of(up.begin(), up.end(),
                     [&](const NodeRecord* node) { return node->health.keeps_off(task.id); });
}

bool is_kept_off_by(const ClusterState& state, const std::string& node, uint64_t task) {
  const auto* record = state.registry.find(node);
  return record && record->health.keeps_off(task);
}

std::string last_try(const Task& task) {
  if (!task.exit || task.exit->reason.empty()) return {};
  return fmt::format("; try {} ended with: {}", task.attempt, task.exit->reason);
}

// Of a task that no node can take now: one with units free could in time, but for its room for
// swapping. Units there are nothing that it waits for.
bool is_passed_for_swap_room(const ClusterState& state, const Task& task) {
  const uint64_t wanted = task.spec.swap_room_bytes;
  if (wanted == 0) return false;
  auto needed = task.spec.needs(state.catalog.data_bytes(task.spec));
  needed.swap_room_bytes = 0;
  const auto& up = state.registry.up();
  return std::any_of(up.begin(), up.end(), [&](const NodeRecord* node) {
    return !node->has_swap_room(wanted) && has_room(state, *node) && node->takes(task.id) &&
           node->facts.resources().hold(needed);
  });
}

// Of a task that no node can take now: some could, but for their room for swapping.
bool lacks_swap_room(const ClusterState& state, const Task& task) {
  const uint64_t wanted = task.spec.swap_room_bytes;
  if (wanted == 0) return false;
  const auto& up = state.registry.up();
  const Resources needed = task.spec.needs(state.catalog.data_bytes(task.spec));
  const auto could_take_it = [&](const NodeRecord* node) {
    return node->takes(task.id) && node->facts.resources().hold(needed) &&
           (task.spec.node.empty() || task.spec.node == node->facts.name);
  };
  return std::any_of(up.begin(), up.end(), could_take_it) &&
         std::none_of(up.begin(), up.end(), [&](const NodeRecord* node) {
           return could_take_it(node) && node->has_swap_room(wanted);
         });
}

// What a task waits for that may run on one node only.
std::string why_not_there(const ClusterState& state, const std::string& name) {
  const auto* node = state.registry.find(name);
  const auto waits = [&](const std::string& closed) {
    return fmt::format("waiting for its node '{}', which is {}", name, closed);
  };
  if (!node) return waits("not there: it has not joined");
  if (node->life != NodeLife::kUp) return waits(node->life_name());
  const auto closed = node->closed_because();
  return closed.empty() ? std::string() : waits("closed: " + closed);
}

// That none is that takes tasks. It is asked of each task that waits.
std::string why_none_is_large_enough(const ClusterState& state, const Task& task) {
  if (!task.spec.node.empty())
    if (auto why = why_not_there(state, task.spec.node); !why.empty()) return why;
  const auto& nodes = state.registry.summary();
  if (nodes.up.empty()) return "waiting for a node: none is up";
  if (nodes.up_shapes.empty())
    return fmt::format("waiting for a node that takes tasks: of the {} that are up none does",
                       nodes.up.size());
  return "waiting for a node that is large enough: none of those that take tasks is";
}

// Who may pass a task that no node can take now.
enum class Passes { kEveryone, kWhoSwapsNot, kWhoSwapsNotThere, kNobody };

// Writes down what it waits for.
Passes note_why(const ClusterState& state, Task& task) {
  const auto& bound_to = task.spec.node;
  if (lacks_swap_room(state, task)) {
    task.reason = fmt::format(
        "waiting for room for swapping: {} {} left",
        bound_to.empty() ? "no node has" : fmt::format("node '{}' does not have", bound_to),
        format_bytes(task.spec.swap_room_bytes));
    // Others that swap must not take what comes free before it.
    return bound_to.empty() ? Passes::kWhoSwapsNot : Passes::kWhoSwapsNotThere;
  }
  if (!bound_to.empty()) {
    task.reason = why_not_there(state, bound_to);
    if (!task.reason.empty()) return Passes::kEveryone;
    task.reason =
        is_kept_off_by(state, bound_to, task.id)
            ? fmt::format("waiting to be tried again on node '{}'", bound_to) + last_try(task)
            : fmt::format("waiting for room on node '{}'", bound_to);
    return Passes::kEveryone;
  }
  if (is_kept_off(state, task)) {
    task.reason =
        "waiting for a node that it was not tried on just now without success" + last_try(task);
    return Passes::kEveryone;
  }
  task.reason = "waiting for a node with room";
  return is_passed_for_swap_room(state, task) ? Passes::kWhoSwapsNot : Passes::kNobody;
}

// What data is far, in one look at the queue: many tasks want the same.
class FarData {
 public:
  explicit FarData(const ClusterState& state) : state_(state) {}

  // How much later the task's turn is for that; 0 where no node has room, as nobody's turn comes.
  double delay_s(const Task& task) {
    if (task.spec.datasets.empty() || state_.settings.service_order == ServiceOrder::kArrival ||
        !some_node_has_room())
      return 0;
    uint64_t bytes = 0;
    for (const auto& use : task.spec.datasets)
      if (const auto* entry = state_.catalog.find(use.dataset))
        if (is_far(*entry, task.spec.node)) bytes += entry->dataset.bytes;
    return state_.order.far_s(state_.settings.service_order, bytes);
  }

 private:
  bool some_node_has_room() {
    const auto& nodes = state_.registry.up();
    if (!some_has_room_)
      some_has_room_ = std::any_of(nodes.begin(), nodes.end(), [&](const NodeRecord* node) {
        return !node->is_closed() && has_room(state_, *node);
      });
    return *some_has_room_;
  }
  // In the fast memory of no node with room, or not in that of the one which the task is bound to.
  bool is_far(const Catalog::Entry& entry, const std::string& bound_to) {
    const auto [known, is_new] = known_.try_emplace({&entry, bound_to});
    const auto serves = [&](const auto& replica) {
      const auto& [name, held] = replica;
      if (!held.in_fast || held.version != entry.dataset.version) return false;
      const auto* node = state_.registry.find(name);
      return node && node->can_be_asked() && !node->is_closed() && has_room(state_, *node) &&
             (bound_to.empty() || bound_to == name);
    };
    if (is_new) known->second = std::none_of(entry.replicas.begin(), entry.replicas.end(), serves);
    return known->second;
  }

  const ClusterState& state_;
  std::optional<bool> some_has_room_;
  std::map<std::pair<const Catalog::Entry*, std::string>, bool> known_;
};

// The queue as policies/scheduling/queue_turns.h wants it. Writes down why a task has no turn.
class QueueLook {
 public:
  QueueLook(ClusterState& state, const LookFrom* from)
      : state_(state),
        far_(state),
        at_(from ? state.tasks.queue().lower_bound(from->place) : state.tasks.queue().begin()) {}

  std::optional<QueuePlace> place() const {
    if (at_ == state_.tasks.queue().end()) return std::nullopt;
    return *at_;
  }
  std::optional<double> look() {
    const uint64_t id = (at_++)->second;
    if (state_.held.waits(id)) return std::nullopt;
    Task& task = *state_.tasks.find(id);
    task.reason = state_.blocked_by(task);
    if (!task.reason.empty()) return std::nullopt;
    const double far_s = far_.delay_s(task);
    if (far_s > 0)
      task.reason =
          "waiting for its turn, which is later as no node with room has its data in fast memory";
    return far_s;
  }

 private:
  ClusterState& state_;
  FarData far_;
  std::set<QueuePlace>::const_iterator at_;
};

// What is kept for tasks that wait for room for swapping.
struct KeptToSwap {
  Awaiting swaps{};
  std::set<std::string> there{};  // as LookFrom::swaps_there
};

// Nothing: the task that it was kept for waits no more.
std::optional<KeptToSwap> kept_before(const ClusterState& state, const LookFrom& from) {
  KeptToSwap kept{.there = from.swaps_there};
  if (!from.swaps) return kept;
  const Task* const task = state.tasks.find(*from.swaps);
  if (!task || task->state != TaskState::kQueued) return std::nullopt;
  kept.swaps = {task, state.catalog.data_bytes(task->spec)};
  return kept;
}

}  // namespace

NextTask next_task(ClusterState& state, GangPolicies& gangs, bool shows_full,
                   const std::optional<LookFrom>& from) {
  state.keep_order();
  const auto before = from ? kept_before(state, *from) : std::nullopt;
  auto [swaps, swaps_there] = before.value_or(KeptToSwap{});
  QueueLook queue(state, before ? &*from : nullptr);
  QueueTurns turns;
  turns.begin(state.held.size());
  while (const auto turn = turns.next(queue)) {
    Task* const task = state.tasks.find(turn->place.second);
    if (!state.registry.summary().up_shapes.hold(
            task->spec.needs(state.catalog.data_bytes(task->spec)))) {
      task->reason = why_none_is_large_enough(state, *task);
      continue;
    }
    if (task->spec.swap_room_bytes > 0 && (swaps.task || swaps_there.contains(task->spec.node))) {
      task->reason = "waiting for its turn: a task before it waits for room for swapping";
      continue;
    }
    if (task->spec.is_gang()) {
      auto plan = plan_gang(state, gangs, *task);
      if (!plan.ranks.empty()) return {task, {}, std::move(plan)};
      task->reason = std::move(plan.reason);
      const int64_t waited_ms =
          state.clock.wall_ms() - std::max(task->submitted_ms, task->ready_ms);
      if (plan.could_fit && waited_ms > state.settings.gang_patience_ms) return {};
      continue;
    }
    auto placement = make_view(state, *task, shows_full, swaps);
    task->reason.clear();
    if (placement.has_candidate()) return {task, std::move(placement)};
    const Passes passes = note_why(state, *task);
    if (passes == Passes::kNobody) return {};
    if (passes == Passes::kWhoSwapsNotThere) swaps_there.insert(task->spec.node);
    if (passes == Passes::kWhoSwapsNot) swaps = {task, state.catalog.data_bytes(task->spec)};
  }
  NextTask none;
  if (const auto& place = turns.cut_off())
    none.beyond = {*place, swaps.task ? std::optional(swaps.task->id) : std::nullopt, swaps_there};
  return none;
}

}  // namespace tierpilot
