// What attempts have of units that is not theirs alone: elastic ones of those that no other task
// takes, others a part of a unit that is shared.
#include <algorithm>

#include "daemon/agent/tasks/task_entry.h"

namespace tierpilot::agent {

Result<uint32_t> TaskTable::set_share(AttemptId attempt, uint32_t milli_units) {
  Entry* entry = find(attempt);
  if (!entry || entry->stage != Stage::kRunning)
    return fail(ErrorCode::kNotFound, label(attempt) + " does not run on this node");
  if (entry->has_share()) {
    const uint32_t got = set_part(*entry, milli_units);
    confine_part(*entry);
    return got;
  }
  if (!entry->is_elastic())
    return fail(ErrorCode::kInvalid, label(attempt) + " is not elastic: its units cannot change");
  const uint64_t most = uint64_t{entry->assignment.max_units} * kMilli;
  entry->milli_units = static_cast<uint32_t>(
      std::clamp<uint64_t>(milli_units, entry->least_milli(), std::max(most, uint64_t{1})));
  // Others keep what they have: who grows beyond that is cut.
  uint64_t others = 0;
  for (const auto& [id, other] : entries_)
    if (id != attempt && other->is_elastic()) others += other->milli_units;
  const uint64_t room = shared_milli() - std::min(shared_milli(), others);
  entry->milli_units = static_cast<uint32_t>(
      std::max<uint64_t>(entry->least_milli(), std::min<uint64_t>(entry->milli_units, room)));
  confine(*entry);
  return entry->milli_units;
}

uint32_t TaskTable::share(AttemptId attempt) const {
  const auto found = entries_.find(attempt);
  if (found == entries_.end()) return 0;
  const Entry& entry = *found->second;
  return entry.is_elastic() || entry.has_share() ? entry.milli_units : 0;
}

std::vector<AttemptId> TaskTable::running_parts() const {
  std::vector<AttemptId> ids;
  for (const auto& [id, entry] : entries_)
    if (entry->has_share()) ids.push_back(id);
  return ids;
}

// Others on the unit keep what they have.
uint32_t TaskTable::set_part(Entry& entry, uint32_t milli) {
  uint32_t room = kMilli;
  for (const auto& [id, other] : entries_)
    if (other.get() != &entry && other->has_share() &&
        other->assignment.part->unit == entry.assignment.part->unit)
      room -= std::min(room, other->milli_units);
  return entry.milli_units = std::clamp(milli, 1u, std::max(room, 1u));
}

const SharedUnit& TaskTable::shared_unit(const Entry& entry) const {
  return limits_.shared_units[entry.assignment.part->unit];
}

void TaskTable::confine_part(Entry& entry) {
  if (entry.pid == 0) return;  // it is told when it has started
  const auto& [cpus, gpu] = shared_unit(entry);
  if (!gpu.empty()) return runner_.confine_gpu(entry.id(), entry.milli_units);
  CpuShare share{cpus, static_cast<double>(cpus.size()) * entry.milli_units / kMilli};
  if (share == entry.confined) return;
  entry.confined = share;
  runner_.confine(entry.id(), share);
}

uint64_t TaskTable::shared_milli() const {
  uint64_t units = cpus_.units();
  for (const auto& [id, entry] : entries_)
    if (entry->stage == Stage::kRunning && !entry->is_elastic()) units -= entry->grant.units.size();
  return units * kMilli;
}

// What is more than the least is lent: it shrinks in proportion when other tasks need the units.
void TaskTable::fit_shares() {
  uint64_t least = 0, lent = 0;
  for (const auto& [id, entry] : entries_) {
    if (!entry->is_elastic()) continue;
    least += entry->least_milli();
    lent += entry->milli_units - entry->least_milli();
  }
  if (least == 0) return;
  const uint64_t room = shared_milli() - std::min(shared_milli(), least);
  for (const auto& [id, entry] : entries_) {
    if (!entry->is_elastic()) continue;
    const uint64_t extra = entry->milli_units - entry->least_milli();
    if (lent > room)
      entry->milli_units = static_cast<uint32_t>(entry->least_milli() + extra * room / lent);
    confine(*entry);
  }
}

void TaskTable::confine(Entry& entry) {
  if (entry.pid == 0) return;  // it is told when it has started
  std::vector<uint32_t> taken;
  for (const auto& [id, other] : entries_)
    if (other->stage == Stage::kRunning && !other->is_elastic())
      taken.insert(taken.end(), other->grant.units.begin(), other->grant.units.end());
  CpuShare share{cpus_.cpus_without(taken), entry.milli_units * cpus_.cores_per_unit() / kMilli};
  if (share == entry.confined) return;
  entry.confined = share;
  runner_.confine(entry.id(), share);
}

}  // namespace tierpilot::agent
