#include "coordinator/core/membership/membership.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/log.h"
#include "coordinator/core/data/discard.h"
#include "coordinator/core/nodes/node_events.h"
#include "coordinator/core/nodes/node_memory.h"
#include "coordinator/core/set_while.h"
#include "coordinator/store/records.h"
#include "coordinator/store/unit_records.h"
#include "model/registration.h"
#include "model/swap_room.h"

namespace tierpilot {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr uint32_t kMaxUnits = 4096;

Status check_facts(const NodeFacts& facts) {
  const bool named = !facts.name.empty() && facts.name.size() <= kMaxNameBytes &&
                     std::all_of(facts.name.begin(), facts.name.end(), [](unsigned char c) {
                       return std::isalnum(c) || c == '-' || c == '_' || c == '.';
                     });
  if (!named)
    return fail(ErrorCode::kInvalid,
                fmt::format("a node's name must be 1 to {} letters, digits, '-', '_' or '.'",
                            kMaxNameBytes));
  if (facts.units == 0)
    return fail(ErrorCode::kInvalid,
                fmt::format("node '{}': it offers no compute unit", facts.name));
  if (facts.units > kMaxUnits)
    return fail(ErrorCode::kInvalid,
                fmt::format("node '{}': it offers {} compute units, at most {} are taken: set "
                            "fewer in its configuration",
                            facts.name, facts.units, kMaxUnits));
  if (facts.swap_room_bytes > kMostSwapRoomBytes)
    return fail(ErrorCode::kInvalid,
                fmt::format("node '{}': it offers {} of room for swapping, at most {} are taken: "
                            "give smaller sizes in [swap] of its configuration",
                            facts.name, format_bytes(facts.swap_room_bytes),
                            format_bytes(kMostSwapRoomBytes)));
  return {};
}

void add_units(ClusterState& state, const NodeFacts& facts) {
  const int64_t now_ms = state.clock.wall_ms();
  auto units = state.units.add(facts, now_ms);
  if (units.empty()) return;
  state.store.write(
      [units = std::move(units), now_ms](Db& db) -> Status {
        for (const auto& unit : units)
          if (auto put = records::put_unit(db, unit, now_ms); !put) return put;
        return {};
      },
      nullptr);
}

}  // namespace

Result<Membership::Ticket> Membership::join(
    const NodeFacts& facts, std::shared_ptr<NodeLink> link,
    const std::vector<std::pair<std::string, ReplicaState>>& replicas,
    const std::set<AttemptId>& live) {
  if (auto ok = check_facts(facts); !ok) return tl::unexpected(ok.error());
  if (state_.leaving_nodes.contains(facts.name))
    return fail(ErrorCode::kConflict,
                fmt::format("node '{}': it is just being removed", facts.name));
  // Tasks of its predecessor, that begin again, may go on from what it has.
  const SetWhile joins(state_.node_joins);
  const int64_t now_ns = state_.clock.boot_ns();
  auto* known = state_.registry.find(facts.name);
  const bool same = known && known->facts.instance == facts.instance;
  // An heir's tasks are dead, and it has the reports of those that ended: no need to wait for the
  // lease.
  const bool replaces =
      known && !same && known->life != NodeLife::kLost &&
      std::count(facts.predecessors.begin(), facts.predecessors.end(), known->facts.instance) == 0;
  if (replaces && now_ns < known->lease_end_ns && (!known->held.empty() || known->link))
    return fail(ErrorCode::kConflict,
                fmt::format("node '{}': another instance of that name holds a lease for {} ms "
                            "more: wait, or give this one a name of its own",
                            facts.name, (known->lease_end_ns - now_ns) / 1'000'000));
  if (replaces) lifecycle_.give_up(*known, fmt::format("node '{}' started anew", facts.name));
  auto added = state_.registry.add(facts);
  if (!added) return tl::unexpected(added.error());
  auto& node = **added;
  if (!same) {
    node.health = {};
    node.takes_none.clear();
  }
  node.has_left = false;
  state_.registry.set_life(node, NodeLife::kUp);
  add_units(state_, facts);
  node.link = std::move(link);
  node.lease_end_ns = now_ns + state_.settings.lease_ms * 1'000'000;
  node.was_lost = false;
  remember(state_, node);
  state_.catalog.forget_node(facts.name);
  node.has_told_all = replicas.size() < kReplicasInRegistration;
  const auto owed = ask_for_owed_drops(node, replicas);
  for (const auto& [dataset, replica] : replicas)
    if (!owed.contains(dataset)) replica_changed(facts.name, dataset, replica);
  discard_unclaimed(node, replicas, live);
  lifecycle_.reconcile(node, live, same);
  state_.units_changed();
  spdlog::info("node '{}' joined: {} units, {} attempts live", facts.name, facts.units,
               live.size());
  current_join_[facts.name] = ++joins_;
  return Ticket{facts.name, joins_};
}

void Membership::discard_unclaimed(
    NodeRecord& node, const std::vector<std::pair<std::string, ReplicaState>>& replicas,
    const std::set<AttemptId>& live) {
  std::set<std::string> written;
  for (const auto& attempt : live)
    if (const auto* task = state_.tasks.find(attempt.task))
      for (const auto& use : task->spec.datasets)
        if (use.write) written.insert(use.dataset);
  for (const auto& [dataset, replica] : replicas) {
    auto* entry = state_.catalog.find(dataset);
    if (!entry || replica.version <= entry->dataset.version || written.contains(dataset)) continue;
    if (const auto& next = entry->next;
        next && next->what.version == replica.version && next->what.digest == replica.digest)
      continue;
    // Its bytes may be all that is left.
    if (entry->replicas.empty()) {
      spdlog::error(
          "dataset '{}': node '{}' holds version {}, which no task has reported, and no "
          "node that is up holds version {}: it is kept there",
          dataset, node.facts.name, replica.version, entry->dataset.version);
      continue;
    }
    spdlog::warn("dataset '{}': version {} of node '{}' was never acknowledged: it is discarded",
                 dataset, replica.version, node.facts.name);
    discard(*entry, node, {dataset, replica.version, replica.bytes, replica.digest});
  }
}

std::set<std::string> Membership::ask_for_owed_drops(
    NodeRecord& node, const std::vector<std::pair<std::string, ReplicaState>>& replicas) {
  const auto known = state_.owed_drops.find(node.facts.name);
  if (known == state_.owed_drops.end()) return {};
  const auto owed = known->second;
  for (const auto& dataset : owed) node.link->drop_dataset(dataset, UINT64_MAX);
  auto gone = owed;
  for (const auto& [dataset, replica] : replicas) gone.erase(dataset);
  // Of a node with more than fits here the rest is told later, and not as what is gone.
  if (node.has_told_all) owes_no_more(node.facts.name, gone);
  return owed;
}

void Membership::owes_no_more(const std::string& node, const std::set<std::string>& gone) {
  const auto known = state_.owed_drops.find(node);
  if (known == state_.owed_drops.end()) return;
  std::vector<std::string> paid;
  for (const auto& dataset : gone)
    if (known->second.erase(dataset)) paid.push_back(dataset);
  if (known->second.empty()) state_.owed_drops.erase(known);
  if (paid.empty()) return;
  state_.store.write(
      [node, paid = std::move(paid)](Db& db) -> Status {
        for (const auto& dataset : paid)
          if (auto done = records::clear_owed_drop(db, node, dataset); !done) return done;
        return {};
      },
      nullptr);
}

void Membership::disconnected(const Ticket& ticket) {
  if (current_join_[ticket.node] != ticket.join) return;
  auto* node = state_.registry.find(ticket.node);
  if (!node || !node->link) return;
  node->link.reset();
  state_.held.wake_all(node->slot);
  spdlog::log(node->has_left ? spdlog::level::info : spdlog::level::warn,
              "node '{}': {}; its lease holds for {} ms", ticket.node,
              node->has_left ? "its daemon was stopped" : "connection lost",
              std::max<int64_t>(0, node->lease_end_ns - state_.clock.boot_ns()) / 1'000'000);
}

Status Membership::left(const Ticket& ticket) {
  const auto node = renew(ticket);
  if (!node) return tl::unexpected(node.error());
  (*node)->has_left = true;
  remember(state_, **node);
  note(state_, ticket.node, kStoppedNode, "its daemon was told to end");
  return {};
}

Result<NodeRecord*> Membership::renew(const Ticket& ticket) {
  auto* node = state_.registry.find(ticket.node);
  if (!node || current_join_[ticket.node] != ticket.join || node->life != NodeLife::kUp)
    return fail(
        ErrorCode::kConflict,
        fmt::format("node '{}': its lease has ended: it has to register again", ticket.node));
  node->lease_end_ns = state_.clock.boot_ns() + state_.settings.lease_ms * 1'000'000;
  return node;
}

void Membership::says(NodeRecord& node, const std::string& takes_none) {
  if (node.takes_none == takes_none) return;
  const bool was_closed = node.is_closed();
  node.takes_none = takes_none;
  if (node.is_closed() == was_closed) return;
  state_.registry.look_anew();
  state_.held.wake_all(node.slot);
  note(state_, node.facts.name, takes_none.empty() ? "takes tasks" : "takes no tasks", takes_none);
}

void Membership::says_unhealthy(const NodeRecord& node,
                                const std::map<std::string, std::string>& reasons) {
  std::map<std::string, std::string> by_unit;
  for (const auto& [unit, reason] : reasons)
    if (const auto id = node.facts.name + "/" + unit; state_.units.is_known(id))
      by_unit[id] = reason.empty() ? "its node does not say why" : reason;
  for (const auto& [unit, reason] : state_.units.say_unhealthy(node.facts.name, std::move(by_unit)))
    note(state_, node.facts.name, reason.empty() ? "a unit is well again" : "a unit is unhealthy",
         reason.empty() ? unit : fmt::format("{}: {}", unit, reason));
}

void Membership::told(NodeRecord& node, size_t events) {
  if (events < kEventsInUpdate) node.has_told_all = true;
}

void Membership::replica_changed(const std::string& node, const std::string& dataset,
                                 const ReplicaState& replica) {
  if (!replica.in_fast && !replica.in_slow) owes_no_more(node, {dataset});
  if (state_.catalog.learns_digest(node, dataset, replica))
    state_.store.write([known = state_.catalog.find(dataset)->dataset](
                           Db& db) { return records::put_dataset(db, known); },
                       nullptr);
  if (replica.in_fast || replica.in_slow)
    lifecycle_.found(node, {dataset, replica.version, replica.bytes, replica.digest});
  const bool of_no_use = state_.catalog.apply(node, dataset, replica);
  on_replica(node, dataset, replica);
  auto* record = state_.registry.find(node);
  auto* entry = state_.catalog.find(dataset);
  if (record && replica.damaged && is_dataset_name(dataset))
    note(state_, node, "a damaged copy",
         fmt::format("dataset '{}' version {}: the bytes were not those of its checksum", dataset,
                     replica.version));
  if (!record || !entry) return;
  if (!entry->replicas.contains(node)) state_.data_gone(*entry, *record);
  // A version above the current one is a write whose task's end is still to be told: it stays.
  if (of_no_use && record->link && replica.version < entry->dataset.version &&
      !lifecycle_.needs_older_version(dataset))
    record->link->drop_dataset(dataset, entry->dataset.version);
  if (of_no_use && record->link && replica.version == entry->dataset.version) {
    spdlog::error("dataset '{}': node '{}' has other bytes as version {} ({}, {}): discarded",
                  dataset, node, replica.version, replica.bytes, to_string(replica.digest));
    discard(*entry, *record, {dataset, replica.version, replica.bytes, replica.digest});
  }
}

void Membership::expire() {
  const int64_t now_ns = state_.clock.boot_ns();
  if (state_.old_leases_end_ns != 0 && now_ns >= state_.old_leases_end_ns) {
    state_.old_leases_end_ns = 0;
    state_.note_lease();
  }
  for (auto& [name, node] : state_.registry.all()) {
    if (node.health.tick(now_ns)) {
      state_.registry.look_anew();
      state_.held.wake_all(node.slot);
    }
    if (node.life == NodeLife::kLost || now_ns < node.lease_end_ns) continue;
    lifecycle_.give_up(
        node, node.has_left
                  ? fmt::format("the daemon of node '{}' was stopped", name)
                  : fmt::format("the lease of node '{}' ended without a word from it", name));
  }
}

}  // namespace tierpilot
