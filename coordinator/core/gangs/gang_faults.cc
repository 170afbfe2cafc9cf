// GangLife's part about what ended a try, and which units are to blame.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "base/log.h"
#include "coordinator/core/gangs/gang_life.h"
#include "coordinator/core/nodes/node_events.h"
#include "coordinator/store/records.h"
#include "coordinator/store/unit_records.h"

namespace tierpilot {
namespace {

// Signals that hardware and kernel send, or whoever ends a process from outside.
bool is_fault_signal(int signal) {
  return signal == SIGKILL || signal == SIGBUS || signal == SIGSEGV || signal == SIGILL ||
         signal == SIGFPE || signal == SIGABRT;
}

// How likely it is what ended the others.
int severity(const Task& rank, const std::string& why_stopped) {
  if (ended_by_its_node(rank, why_stopped)) return 4;
  if (!rank.exit) return rank.rank->pid != 0 ? 3 : 0;  // its node was lost
  if (rank.exit->how == TaskEnd::kCancelled ||
      (rank.exit->how == TaskEnd::kExited && rank.exit->code == 0))
    return 0;
  if (rank.exit->how == TaskEnd::kExited) return 1;
  return rank.exit->how == TaskEnd::kSignalled && rank.exit->code == SIGABRT ? 2 : 3;
}

}  // namespace

// What a node is asked for first it says in the end: its drain, where the gang was to end later.
bool ended_by_its_node(const Task& rank, const std::string& why_stopped) {
  if (!rank.exit || rank.exit->how != TaskEnd::kCancelled) return false;
  const auto& told = rank.exit->reason;
  return !rank.cancel_asked || (!told.empty() && !why_stopped.empty() && told != why_stopped);
}

std::vector<std::string> units_of_rank(const Task& rank) {
  std::vector<std::string> units;
  for (const auto& gpu : rank.rank->gpus) units.push_back(gpu_unit_id(rank.node, gpu));
  if (units.empty())
    for (const uint32_t number : rank.rank->cpu_units)
      units.push_back(cpu_unit_id(rank.node, number));
  return units;
}

const Task* GangLife::culprit(const Task& gang, const Try& last) const {
  if (!last.first_bad) return nullptr;
  const auto ids = state_.tasks.ranks_tried(gang);
  const auto* worst = state_.tasks.find(ids[*last.first_bad]);
  // One that dies takes the others along, as does one that its node ends, and their own errors may
  // be told first.
  for (const uint64_t id : ids) {
    const auto* rank = state_.tasks.find(id);
    if (severity(*rank, last.why_stopped) > severity(*worst, last.why_stopped)) worst = rank;
  }
  return worst;
}

bool GangLife::blame_units(const Task& gang, const Task& culprit) {
  if (culprit.rank->pid == 0) return false;
  const auto& exit = culprit.exit;
  const bool by_signal = exit && exit->how == TaskEnd::kSignalled && is_fault_signal(exit->code);
  const bool node_lost =
      !exit || exit->how == TaskEnd::kLeaseExpired || exit->how == TaskEnd::kLost;
  const auto kind = node_lost ? std::string("node lost")
                              : fmt::format("{} {}", task_end_name(exit->how), exit->code);
  const auto units = units_of_rank(culprit);
  // Of those that were cancelled while they waited nobody tells.
  std::erase_if(blames_, [&](const auto& blame) { return !state_.tasks.find(blame.first); });
  auto& before = blames_[gang.id];
  const bool elsewhere = !node_lost && before.kind == kind && !before.units.empty() &&
                         std::none_of(units.begin(), units.end(), [&](const auto& unit) {
                           return before.units.contains(unit);
                         });
  before = {kind, {units.begin(), units.end()}};
  if (elsewhere) {
    state_.units.forgive(gang.id);
    state_.store.write([id = gang.id](Db& db) { return records::remove_unit_failures(db, id); },
                       nullptr);
    return true;
  }
  if (!by_signal && !node_lost) return false;
  for (const auto& unit : units) count({state_.clock.wall_ms(), unit, kind, gang.id, {}});
  return false;
}

void GangLife::count(const UnitFailure& failure, std::function<void(Status)> written) {
  state_.units.failed(failure);
  write(failure, std::move(written));
}

void GangLife::write(const UnitFailure& failure, std::function<void(Status)> written) {
  const auto& unit = failure.unit;
  const int64_t now_ms = state_.clock.wall_ms();
  const auto reason = state_.units.quarantine_reason(unit, state_.settings.quarantine_failures,
                                                     now_ms - state_.settings.quarantine_window_ms);
  if (!reason.empty()) {
    spdlog::warn("unit {}: quarantined {}", unit, reason);
    state_.units.quarantine(unit, reason);
  }
  state_.store.write(
      [failure, now_ms, reason](Db& db) -> Status {
        if (auto put = records::put_unit_failure(db, failure); !put || reason.empty()) return put;
        return records::put_unit_drain(db, failure.unit, now_ms, reason);
      },
      [this, unit, reason, written = std::move(written)](Status status) {
        if (!reason.empty()) state_.units.quarantine_written(unit, status.has_value());
        if (written) written(std::move(status));
      });
}

void GangLife::unit_failed(const std::string& unit, const std::string& kind,
                           const std::string& detail, const std::string& told,
                           std::function<void(Status)> written) {
  if (const auto* before = state_.units.find(told)) return write(*before, std::move(written));
  const auto id = parse_unit_id(unit);
  if (!id || !state_.units.is_known(unit)) {
    if (written) written({});
    return;
  }
  const auto why = fmt::format("unit {}: {}: {}", unit, kind, detail);
  note(state_, std::string(id->node), "a unit failed", why);
  count({state_.clock.wall_ms(), unit, kind, 0, told}, std::move(written));
  auto* gang = state_.tasks.find(state_.units.user_of(unit));
  auto* now = gang ? current(gang->id, gang->attempt) : nullptr;
  if (!now) return;
  now->device_fault = why;
  stop(*gang, why);
}

}  // namespace tierpilot
