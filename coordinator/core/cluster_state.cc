#include "coordinator/core/cluster_state.h"

#include <algorithm>

#include "base/log.h"
#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

// Which tasks of its submit a waiting task still waits for.
Result<std::vector<uint64_t>> missing_parents(Db& db, const Task& task) {
  records::TaskFilter filter;
  filter.job = task.job;
  filter.limit = UINT32_MAX;
  auto siblings = records::tasks(db, filter);
  if (!siblings) return tl::unexpected(siblings.error());
  std::vector<uint64_t> missing;
  for (const auto& name : task.spec.after)
    for (const auto& sibling : *siblings)
      if (sibling.spec.name == name && sibling.state != TaskState::kSucceeded)
        missing.push_back(sibling.id);
  return missing;
}

constexpr const char* kReckonings = "reckonings";

Status restore_tasks(ClusterState& state) {
  auto& db = state.store.reader();
  auto nodes = records::nodes(db);
  if (!nodes) return tl::unexpected(nodes.error());
  for (const auto& [name, memory] : *nodes) state.registry.remember_slot(name, memory.slot);
  auto orders = records::node_orders(db);
  if (!orders) return tl::unexpected(orders.error());
  for (const auto& [name, order] : *orders) state.registry.set_order(name, order);
  auto active = records::active_tasks(db);
  if (!active) return tl::unexpected(active.error());
  std::vector<std::vector<uint64_t>> depends_on;
  for (const auto& task : *active) {
    auto missing = task.state == TaskState::kWaiting ? missing_parents(db, task)
                                                     : Result<std::vector<uint64_t>>{};
    if (!missing) return tl::unexpected(missing.error());
    depends_on.push_back(std::move(*missing));
  }
  // The old coordinator may have granted a lease of its own length just before it died.
  auto old_lease_ms = records::setting(db, "lease_ms", state.settings.lease_ms);
  if (!old_lease_ms) return tl::unexpected(old_lease_ms.error());
  const int64_t lease_end_ns =
      state.clock.boot_ns() + std::max(*old_lease_ms, state.settings.lease_ms) * 1'000'000;
  for (auto& task : *active) {
    task.place_s = state.place_s(task);
    state.catalog.add_user(task);
    if (task.state != TaskState::kAssigned && task.state != TaskState::kRunning) continue;
    auto& node = state.registry.expect(task.node, (*nodes)[task.node].instance, lease_end_ns);
    state.registry.assign(node, {task.id, task.attempt}, task.spec.units);
    if (task.state == TaskState::kRunning) state.registry.run(node, task.spec.units);
    state.catalog.lock_writes(task);
  }
  if (!active->empty()) spdlog::info("store: {} tasks go on", active->size());
  state.tasks.add(std::move(*active), depends_on);
  return {};
}

}  // namespace

void ClusterState::keep_order() {
  // It takes a while where many tasks wait.
  constexpr int64_t kAtMostEvery_ns = 1'000'000'000;
  const int64_t now_ns = clock.boot_ns();
  if (reckoned_ns > now_ns - kAtMostEvery_ns) return;
  if (!order.renew(settings.service_order, registry.int32_to_float())) return;
  reckoned_ns = now_ns;
  begin_reckoning(reckoning + 1);
  tasks.place_anew([this](const Task& task) { return place_s(task); });
  held.wake_everything();
}

void ClusterState::begin_reckoning(int64_t number) {
  if (settings.service_order == ServiceOrder::kArrival) return;
  reckoning = number;
  store.write([number](Db& db) { return records::put_setting(db, kReckonings, number); }, nullptr);
}

Status restore(ClusterState& state) {
  auto& db = state.store.reader();
  auto last_task = records::last_task_id(db);
  if (!last_task) return tl::unexpected(last_task.error());
  auto last_job = records::last_job_id(db);
  if (!last_job) return tl::unexpected(last_job.error());
  const auto reckonings = records::setting(db, kReckonings, 0);
  if (!reckonings) return tl::unexpected(reckonings.error());
  state.begin_reckoning(*reckonings + 1);
  state.last_task = *last_task;
  state.last_job = *last_job;
  auto datasets = records::datasets(db);
  if (!datasets) return tl::unexpected(datasets.error());
  for (auto& dataset : *datasets) state.catalog.put(std::move(dataset));
  auto owed = records::owed_drops(db);
  if (!owed) return tl::unexpected(owed.error());
  for (const auto& [node, dataset] : *owed) state.owed_drops[node].insert(dataset);
  if (auto tasks = restore_tasks(state); !tasks) return tasks;
  const int64_t lease_ms = state.settings.lease_ms;
  state.store.write([lease_ms](Db& w) { return records::put_setting(w, "lease_ms", lease_ms); },
                    nullptr);
  return {};
}

}  // namespace tierpilot
