#include "coordinator/core/membership/node_admin.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "coordinator/core/nodes/node_events.h"
#include "coordinator/store/records.h"
#include "coordinator/store/unit_records.h"

namespace tierpilot {
namespace {

constexpr int64_t kLongestDrain_ms = 366LL * 24 * 3600 * 1000;

const char* event_of(NodeOrder::Kind kind) {
  switch (kind) {
    case NodeOrder::Kind::kCordoned:
      return "cordoned";
    case NodeOrder::Kind::kDrained:
      return "drained";
    case NodeOrder::Kind::kNone:
      break;
  }
  return "uncordoned";
}

}  // namespace

void NodeAdmin::order(const std::string& node, NodeOrder::Kind kind, int64_t within_ms,
                      const std::string& who, Done done) {
  const auto known = state_.registry.slots().names();
  if (!state_.registry.find(node) && std::find(known.begin(), known.end(), node) == known.end())
    return done(fail(ErrorCode::kNotFound, fmt::format("node '{}' does not exist", node)));
  if (state_.leaving_nodes.contains(node))
    return done(fail(ErrorCode::kConflict, fmt::format("node '{}' is being removed", node)));
  const int64_t now_ms = state_.clock.wall_ms();
  NodeOrder order{kind, now_ms, 0, who};
  if (kind == NodeOrder::Kind::kDrained)
    order.deadline_ms = now_ms + std::clamp<int64_t>(within_ms, 0, kLongestDrain_ms);
  const NodeEvent event{now_ms, node, event_of(kind), "by " + who};
  state_.store.write(
      [node, order, event](Db& db) -> Status {
        if (auto put = records::put_node_order(db, node, order); !put) return put;
        return records::put_node_event(db, event);
      },
      [this, node, order, event, done = std::move(done)](Status status) {
        if (status) {
          spdlog::warn("node '{}': {}: {}", node, event.what, event.why);
          obey(node, order);
        }
        done(std::move(status));
      });
}

void NodeAdmin::obey(const std::string& node, const NodeOrder& order) {
  state_.registry.set_order(node, order);
  deadlines_ns_.erase(node);
  auto* record = state_.registry.find(node);
  if (!record) return;
  state_.held.wake_all(record->slot);
  ask_back(*record);
}

int64_t NodeAdmin::deadline_ns(const NodeRecord& node) {
  const auto [known, is_new] = deadlines_ns_.try_emplace(node.facts.name);
  const auto& order = node.order;
  const int64_t left_ms =
      std::clamp<int64_t>(order.deadline_ms - state_.clock.wall_ms(), 0,
                          std::max<int64_t>(order.deadline_ms - order.since_ms, 0));
  if (is_new) known->second = state_.clock.boot_ns() + left_ms * 1'000'000;
  return known->second;
}

void NodeAdmin::ask_back(NodeRecord& node) {
  if (node.order.kind != NodeOrder::Kind::kDrained || !node.link) return;
  const bool all = state_.clock.boot_ns() >= deadline_ns(node);
  for (const auto& attempt : node.held) {
    const auto* task = state_.tasks.find(attempt.task);
    if (!task || (!all && task->state == TaskState::kRunning)) continue;
    auto& over = asked_back_[attempt];
    if (over.lock() == node.link) continue;
    over = node.link;
    node.link->cancel(attempt, fmt::format("node '{}' is drained", node.facts.name));
  }
}

void NodeAdmin::tick() {
  for (auto& [name, node] : state_.registry.all()) ask_back(node);
  std::erase_if(asked_back_, [&](const auto& asked) {
    const auto* task = state_.tasks.find(asked.first.task);
    return !task || task->attempt != asked.first.attempt ||
           (task->state != TaskState::kAssigned && task->state != TaskState::kRunning);
  });
}

Status NodeAdmin::removable(const std::string& name) const {
  const auto known = state_.registry.slots().names();
  const auto* node = state_.registry.find(name);
  if (!node && std::find(known.begin(), known.end(), name) == known.end())
    return fail(ErrorCode::kNotFound, fmt::format("node '{}' does not exist", name));
  if (node && node->life != NodeLife::kLost)
    return fail(ErrorCode::kConflict,
                fmt::format("node '{}' is {}: stop its daemon, and wait until its lease has ended",
                            name, node->life_name()));
  for (const auto& [id, task] : state_.tasks.all())
    if (task.spec.node == name)
      return fail(ErrorCode::kConflict,
                  fmt::format("node '{}': task {} is bound to it: cancel it first", name, id));
  if (state_.coming_to.contains(name))
    return fail(ErrorCode::kConflict,
                fmt::format("node '{}': a task that is just being submitted is bound to it", name));
  for (const auto& [dataset, entry] : state_.catalog.all())
    if (entry.dataset.home == name)
      return fail(ErrorCode::kConflict,
                  fmt::format("node '{}' is the home of dataset '{}': start it again, or remove "
                              "the dataset first",
                              name, dataset));
  return {};
}

void NodeAdmin::remove(const std::string& node, const std::string& who, Done done) {
  if (auto ok = removable(node); !ok) return done(std::move(ok));
  state_.leaving_nodes.insert(node);
  state_.owed.forget(node_key(node));
  state_.store.write(
      [node](Db& db) -> Status {
        if (auto removed = records::remove_units(db, node); !removed) return removed;
        return records::remove_node(db, node);
      },
      [this, node, who, done = std::move(done)](Status status) {
        state_.leaving_nodes.erase(node);
        if (status) forget(node, who);
        done(std::move(status));
      });
}

void NodeAdmin::forget(const std::string& node, const std::string& who) {
  state_.registry.remove(node);
  state_.owed_drops.erase(node);
  state_.units.forget(node);
  deadlines_ns_.erase(node);
  note(state_, node, "removed", "by " + who);
}

}  // namespace tierpilot
