#include "coordinator/core/cluster_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "coordinator/core/data/write_copies.h"
#include "coordinator/core/gangs/checkpoint_choice.h"
#include "coordinator/store/backup.h"
#include "coordinator/store/records.h"
#include "coordinator/store/unit_records.h"

namespace tierpilot {
namespace {

// Which tasks of its submit each waiting task (parallel to `active`) still waits for. Those that
// are not active have succeeded: with one that ended otherwise, all that wait for it ended too, in
// the same commit.
std::vector<std::vector<uint64_t>> missing_parents(const std::vector<Task>& active) {
  std::map<std::pair<uint64_t, std::string_view>, uint64_t> by_name;
  for (const auto& task : active)
    if (!task.spec.name.empty()) by_name[{task.submission, task.spec.name}] = task.id;
  std::vector<std::vector<uint64_t>> missing(active.size());
  for (size_t i = 0; i < active.size(); ++i) {
    if (active[i].state != TaskState::kWaiting) continue;
    for (const auto& name : active[i].spec.after)
      if (const auto parent = by_name.find({active[i].submission, name}); parent != by_name.end())
        missing[i].push_back(parent->second);
  }
  return missing;
}

constexpr const char* kReckonings = "reckonings";
constexpr const char* kLease = "lease_ms";

// Until when a node may go on that joined the coordinator before.
Result<int64_t> restore_leases(ClusterState& state) {
  auto& db = state.store.reader();
  // The old coordinator may have granted a lease of its own length just before it died.
  auto old_lease_ms = records::setting(db, kLease, state.settings.lease_ms);
  if (!old_lease_ms) return tl::unexpected(old_lease_ms.error());
  const int64_t lease_end_ns =
      state.clock.boot_ns() + std::max(*old_lease_ms, state.settings.lease_ms) * 1'000'000;
  state.joined_by_ns = lease_end_ns;
  if (*old_lease_ms > state.settings.lease_ms) state.old_leases_end_ns = lease_end_ns;
  if (auto adopting = records::setting(db, restored::kAdopting, 0); adopting && *adopting != 0)
    state.adopt_until_ns = lease_end_ns;
  return lease_end_ns;
}

Status restore_nodes(ClusterState& state, int64_t lease_end_ns) {
  using Away = records::NodeMemory::Away;
  auto& db = state.store.reader();
  auto nodes = records::nodes(db);
  if (!nodes) return tl::unexpected(nodes.error());
  auto orders = records::node_orders(db);
  if (!orders) return tl::unexpected(orders.error());
  for (const auto& [name, order] : *orders) state.registry.set_order(name, order);
  for (const auto& [name, memory] : *nodes) {
    state.registry.slots().remember(name, memory.slot);
    auto& node = state.registry.expect(name, memory.instance, lease_end_ns);
    node.has_left = memory.away == Away::kStopped;
    node.was_lost = memory.away == Away::kLost;
  }
  return {};
}

Status restore_tasks(ClusterState& state, int64_t lease_end_ns) {
  auto active = records::active_tasks(state.store.reader());
  if (!active) return tl::unexpected(active.error());
  const auto depends_on = missing_parents(*active);
  for (size_t i = 0; i < active->size(); ++i) {
    auto& task = (*active)[i];
    if (task.state == TaskState::kWaiting && depends_on[i].empty() && !task.rank)
      task.state = TaskState::kQueued;
    task.place_s = state.place_s(task);
    state.catalog.add_user(task);
    state.load.add(task.user, {1, task_bytes(task.spec)});
    if (task.state != TaskState::kAssigned && task.state != TaskState::kRunning) continue;
    if (task.spec.is_gang()) continue;  // its ranks are on nodes
    // That it joined may not have been written down.
    auto* known = state.registry.find(task.node);
    auto& node = known ? *known : state.registry.expect(task.node, 0, lease_end_ns);
    state.catalog.lock_writes(task);
    if (WriteCopies::were_wanted(state, task)) continue;  // its processes have ended
    state.registry.assign(node, {task.id, task.attempt}, task.spec.own_units(),
                          task.spec.swap_room_bytes);
    if (task.state == TaskState::kRunning) state.registry.run(node, task.spec.own_units());
  }
  if (!active->empty()) spdlog::info("store: {} tasks go on", active->size());
  state.tasks.add(std::move(*active), depends_on);
  return {};
}

}  // namespace

std::string ClusterState::blocked_by(const Task& task) const {
  if (const auto* node = ending.node_of(task.id))
    return "waiting for an earlier attempt of it to end on node '" + *node + "'";
  if (task.attempt > 0)
    if (auto awaited = awaited_checkpoint(*this, task.id); !awaited.empty()) return awaited;
  for (const uint64_t parent : task.parents)
    if (refused_ends.contains(parent))
      return fmt::format("waiting until the end of task {} is written down", parent);
  return catalog.blocked_by(task);
}

void ClusterState::keep_order() {
  // It takes a while where many tasks wait.
  constexpr int64_t kAtMostEvery_ns = 1'000'000'000;
  const int64_t now_ns = clock.boot_ns();
  if (reckoned_ns > now_ns - kAtMostEvery_ns) return;
  if (!order.renew(settings.service_order, registry.summary().int32_to_float)) return;
  reckoned_ns = now_ns;
  begin_reckoning(reckoning + 1);
  tasks.place_anew([this](const Task& task) { return place_s(task); });
  held.wake_everything();
}

void ClusterState::begin_reckoning(int64_t number) {
  if (settings.service_order == ServiceOrder::kArrival) return;
  reckoning = number;
  owed.write(kReckonings,
             [number](Db& db) { return records::put_setting(db, kReckonings, number); });
}

void ClusterState::note_lease() {
  owed.write(kLease, [lease_ms = settings.lease_ms](Db& db) {
    return records::put_setting(db, kLease, lease_ms);
  });
}

Status restore(ClusterState& state) {
  auto& db = state.store.reader();
  auto last_task = records::last_task_id(db);
  if (!last_task) return tl::unexpected(last_task.error());
  auto last_submission = records::last_submission(db);
  if (!last_submission) return tl::unexpected(last_submission.error());
  const auto reckonings = records::setting(db, kReckonings, 0);
  if (!reckonings) return tl::unexpected(reckonings.error());
  state.begin_reckoning(*reckonings + 1);
  const auto ids_above = records::setting(db, restored::kIdsAbove, 0);
  const auto attempts_above = records::setting(db, restored::kAttemptsAbove, 0);
  if (!ids_above) return tl::unexpected(ids_above.error());
  if (!attempts_above) return tl::unexpected(attempts_above.error());
  state.last_task = std::max(*last_task, static_cast<uint64_t>(*ids_above));
  state.last_submission = std::max(*last_submission, static_cast<uint64_t>(*ids_above));
  state.restored_up_to = static_cast<uint64_t>(*ids_above);
  state.attempts_above = static_cast<uint32_t>(*attempts_above);
  auto datasets = records::datasets(db);
  if (!datasets) return tl::unexpected(datasets.error());
  for (auto& dataset : *datasets) state.catalog.put(std::move(dataset));
  auto owed = records::owed_drops(db);
  if (!owed) return tl::unexpected(owed.error());
  // One of the same name that is there now is another one, which a store of older programs may owe.
  for (const auto& [node, dataset] : *owed)
    if (!state.catalog.find(dataset)) state.owed_drops[node].insert(dataset);
  const auto units = records::read_units(db);
  if (!units) return tl::unexpected(units.error());
  state.units.restore(*units);
  const auto lease_end_ns = restore_leases(state);
  if (!lease_end_ns) return tl::unexpected(lease_end_ns.error());
  if (auto nodes = restore_nodes(state, *lease_end_ns); !nodes) return nodes;
  if (auto tasks = restore_tasks(state, *lease_end_ns); !tasks) return tasks;
  if (state.old_leases_end_ns == 0) state.note_lease();
  return {};
}

}  // namespace tierpilot
