// Which units were looked at for a task, and why it does not start on them.
#include <fmt/format.h>

#include <algorithm>

#include "coordinator/core/sharing/share_keeper.h"

namespace tierpilot {
namespace {

constexpr size_t kMostExplained = 64;  // that is explained, not what the policy sees
constexpr size_t kMostKept = 12;

// Where it could start before the rest; the chosen unit stays the first.
void keep_the_best(std::vector<UnitLook>& looks) {
  std::stable_partition(looks.begin(), looks.end(),
                        [](const UnitLook& look) { return look.refused.empty(); });
  looks.resize(std::min(looks.size(), kMostKept));
}

}  // namespace

const char* ShareKeeper::node_refuses(const Task& task, const NodeRecord& node) const {
  if (!task.spec.node.empty() && task.spec.node != node.facts.name)
    return "the task asks for another node";
  if (!node.takes(task.id)) return "its node is closed, on trial or does not answer";
  if (!node.has_swap_room(task.spec.swap_room_bytes))
    return "its node has too little room for swapping left";
  return nullptr;
}

uint64_t ShareKeeper::kept_for_another(const Task& task, const UnitId& unit) const {
  const auto kept = kept_for_.find(unit);
  return kept == kept_for_.end() || kept->second == task.id ? 0 : kept->second;
}

std::string ShareKeeper::why_not(const Task& task, const NodeRecord& node, size_t index,
                                 const sharing::LiveUnit& unit,
                                 const sharing::WaitingJob& job) const {
  if (const char* const refused = node_refuses(task, node)) return refused;
  if (const auto other = kept_for_another(task, {node.facts.name, index}))
    return fmt::format("it is kept for task {}", other);
  if (unit.type.empty()) return "it is unhealthy or drained";
  return policy_->refusal(unit, job);
}

UnitLooks ShareKeeper::looks(const Task& task, const Units& units, const sharing::WaitingJob& job,
                             const sharing::Start* chosen) const {
  UnitLooks looks;
  const auto look_at = [&](size_t n, size_t u) {
    const auto& node = *units.nodes[n];
    const auto& unit = units.live[n][u];
    const auto& facts = node.facts.shared_units[u];
    if (facts.engine() != task.spec.share.engine || looks.units.size() >= kMostExplained) return;
    const auto free = unit.free();
    UnitLook look{node.facts.name,
                  static_cast<uint32_t>(u),
                  facts.gpu,
                  free.milli,
                  free.memory_bytes,
                  {},
                  {}};
    for (const auto& running : unit.jobs) look.tasks.push_back(running.id);
    const bool is_chosen = chosen && chosen->node == n && chosen->unit == u;
    if (!is_chosen) look.refused = why_not(task, node, u, unit, job);
    looks.eligible += look.refused.empty();
    looks.units.push_back(std::move(look));
  };
  if (chosen) look_at(chosen->node, chosen->unit);
  for (size_t n = 0; n < units.live.size(); ++n)
    for (size_t u = 0; u < units.live[n].size(); ++u)
      if (!chosen || chosen->node != n || chosen->unit != u) look_at(n, u);
  looks.looked_at = static_cast<uint32_t>(looks.units.size());
  keep_the_best(looks.units);
  return looks;
}

std::vector<UnitLook> ShareKeeper::looks_now(uint64_t id) const {
  const auto* task = state_.tasks.find(id);
  if (!task || !task->spec.is_shared() || task->state != TaskState::kQueued) return {};
  auto now = units(false);
  const auto job = waiting_job(*task, now);
  close_unsound(now);
  return looks(*task, now, job, nullptr).units;
}

}  // namespace tierpilot
