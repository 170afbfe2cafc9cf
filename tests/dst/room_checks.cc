#include "tests/dst/room_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tierpilot::dst {
namespace {

// Some looks at the queue.
constexpr int64_t kPlacedNs = 5 * kSecond;

bool is_on_a_node(const Task& task) {
  return !task.spec.is_gang() &&
         (task.state == TaskState::kAssigned || task.state == TaskState::kRunning);
}

// It stands in the one queue, and waits for nothing but a node.
bool is_plain(const Task& task) {
  return !task.spec.is_shared() && !task.spec.is_gang() && !task.rank && task.spec.datasets.empty();
}

// But for units and room that others have.
bool may_run(const TaskSpec& spec, const Node& node) {
  if (!spec.node.empty() && spec.node != node.name()) return false;
  if (!spec.is_shared()) return true;
  return std::ranges::any_of(node.shared_units(), [&](const auto& unit) {
    return unit.engine() == spec.share.engine && unit.memory_bytes >= spec.memory_bytes;
  });
}

bool stands_before(const Task& one, const Task& other) {
  return std::pair(one.place_s, one.id) < std::pair(other.place_s, other.id);
}

}  // namespace

void RoomChecks::check(int64_t disturbed_until_ns) {
  if (!coordinator_.up()) return;
  check_given();
  check_placed(loop_.now_ns() < disturbed_until_ns);
  check_waits(disturbed_until_ns);
}

// What counts as given is what those have whose end is not known, no more and no less.
void RoomChecks::check_given() {
  const auto& core = coordinator_.core();
  std::map<std::string, uint64_t> given;
  for (const auto& [id, task] : core.state.tasks.all())
    if (is_on_a_node(task) && !core.copies.waits(id)) given[task.node] += task.spec.swap_room_bytes;
  for (const auto& [name, node] : core.state.registry.all())
    if (node.assigned_swap_bytes != given[name])
      judge_.violated("over-room",
                      fmt::format("{} bytes of room for swapping of {} count as given, "
                                  "and its tasks have {}",
                                  node.assigned_swap_bytes, name, given[name]));
}

// To a node with so much left, and to nobody before those that wait for it.
void RoomChecks::check_placed(bool is_disturbed) {
  const auto& state = coordinator_.core().state;
  std::set<uint64_t> lack_room;
  for (const auto& [id, task] : state.tasks.all()) {
    if (task.spec.swap_room_bytes == 0) continue;
    if (task.state == TaskState::kQueued && is_plain(task) &&
        task.reason.starts_with("waiting for room for swapping"))
      lack_room.insert(id);
    const uint32_t now = is_on_a_node(task) ? task.attempt : 0;
    if (std::exchange(placed_[id], now) == now || task.state != TaskState::kAssigned) continue;
    const auto* node = state.registry.find(task.node);
    if (node && node->life == NodeLife::kUp &&
        node->assigned_swap_bytes > node->facts.swap_room_bytes)
      judge_.violated("over-room", fmt::format("task {} is given to {}, of whose {} bytes of room "
                                               "for swapping {} are given with that",
                                               id, task.node, node->facts.swap_room_bytes,
                                               node->assigned_swap_bytes));
    if (!is_disturbed && is_plain(task)) check_order(task);
  }
  lack_room_ = std::move(lack_room);
}

void RoomChecks::check_order(const Task& placed) const {
  const auto& state = coordinator_.core().state;
  for (const uint64_t id : lack_room_) {
    const auto* waits = state.tasks.find(id);
    if (!waits || waits->state != TaskState::kQueued || !stands_before(*waits, placed)) continue;
    const bool would_wait = waits->spec.node.empty() || waits->spec.node == placed.spec.node;
    const auto* node = state.registry.find(placed.node);
    if (would_wait && node && node->takes(id))
      judge_.violated("out-of-turn",
                      fmt::format("task {} is given room for swapping on {}, and task {}, which "
                                  "stands before it, waits for some",
                                  placed.id, placed.node, id));
  }
}

bool RoomChecks::could_be_placed(const Task& task) const {
  const auto& state = coordinator_.core().state;
  const auto& up = state.registry.up();
  return std::any_of(up.begin(), up.end(), [&](const NodeRecord* node) {
    const bool may = task.spec.node.empty() || task.spec.node == node->facts.name;
    return may && node->takes(task.id) && node->idle_resources().hold(task.spec.needs(0));
  });
}

// Nobody waits for long for what is there, but for those before it that want room, too, and gangs,
// which wait for many units at once.
void RoomChecks::check_waits(int64_t disturbed_until_ns) {
  const auto& tasks = coordinator_.core().state.tasks;
  bool is_first = true;  // that wants room
  for (const auto& [place, id] : tasks.queue()) {
    const auto& task = *tasks.find(id);
    const bool wants_room = task.spec.swap_room_bytes > 0;
    const bool waits_for_others =
        !tasks.queued_gangs().empty() || (wants_room && !std::exchange(is_first, false));
    if (!is_plain(task) || waits_for_others || !could_be_placed(task)) {
      idle_since_ns_.erase(id);
      continue;
    }
    const int64_t since_ns =
        std::max(idle_since_ns_.emplace(id, loop_.now_ns()).first->second, disturbed_until_ns);
    if (loop_.now_ns() - since_ns > kPlacedNs)
      judge_.violated(
          "idle-room",
          fmt::format("task {} waits, and for {:.1f} s a node has had all "
                      "that it needs: {}",
                      id, static_cast<double>(loop_.now_ns() - since_ns) / 1e9, task.reason));
  }
}

void RoomChecks::check_quiet() {
  if (!coordinator_.up()) return;
  for (const auto& [name, node] : coordinator_.core().state.registry.all())
    if (node.assigned_swap_bytes > 0)
      judge_.violated("unbounded", fmt::format("{} bytes of room for swapping of {} are left over",
                                               node.assigned_swap_bytes, name));
  for (const auto& node : nodes_)
    if (const uint64_t bytes = node->up() ? node->daemon().warden().swap_given_bytes() : 0;
        bytes > 0)
      judge_.violated("unbounded", fmt::format("of {} bytes of room for swapping are left over on "
                                               "the node: {}",
                                               node->name(), bytes));
}

bool RoomChecks::knows_all_nodes() const {
  if (!coordinator_.up()) return false;
  const auto& registry = coordinator_.core().state.registry;
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    const auto* record = registry.find(node->name());
    // An older program tells of neither units nor room.
    return record && record->life == NodeLife::kUp &&
           record->facts.shared_units.size() == node->shared_units().size();
  });
}

bool RoomChecks::never_fits(const TaskSpec& spec) const {
  if (spec.swap_room_bytes == 0) return false;
  uint64_t ranks = 0;
  for (const auto& node : nodes_)
    if (may_run(spec, *node))
      ranks += std::min<uint64_t>(node->most_swap_bytes() / spec.swap_room_bytes,
                                  spec.is_gang() ? kUnits / spec.units : 1);
  return ranks < (spec.is_gang() ? spec.gang.ranks : 1);
}

bool RoomChecks::always_fits(const TaskSpec& spec) const {
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    return !may_run(spec, *node) || spec.swap_room_bytes * kUnits <= node->least_swap_bytes();
  });
}

}  // namespace tierpilot::dst
