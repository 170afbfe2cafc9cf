#include "daemon/agent/tasks/unit_shares.h"

#include <algorithm>

namespace tierpilot::agent {

void UnitShares::begin(Attempt& attempt) {
  if (attempt.assignment.max_units > 0) attempt.milli_units = attempt.least_milli();
  if (const auto& part = attempt.assignment.part) set_part(attempt, part->milli);
}

void UnitShares::started(Attempt& attempt) {
  if (attempt.is_elastic()) confine(attempt);
  if (attempt.has_share()) confine_part(attempt);
}

Result<uint32_t> UnitShares::set(AttemptId id, uint32_t milli_units) {
  auto* attempt = attempts_.find(id);
  if (!attempt || attempt->stage != Stage::kRunning)
    return fail(ErrorCode::kNotFound, label(id) + " does not run on this node");
  if (attempt->is_elastic()) return set_elastic(*attempt, milli_units);
  if (!attempt->has_share())
    return fail(ErrorCode::kInvalid, label(id) + " is not elastic: its units cannot change");
  const uint32_t got = set_part(*attempt, milli_units);
  confine_part(*attempt);
  return got;
}

Result<uint32_t> UnitShares::set_elastic(Attempt& attempt, uint32_t milli_units) {
  const uint64_t most = uint64_t{attempt.assignment.max_units} * kMilli;
  attempt.milli_units = static_cast<uint32_t>(
      std::clamp<uint64_t>(milli_units, attempt.least_milli(), std::max(most, uint64_t{1})));
  // Others keep what they have: who grows beyond that is cut.
  uint64_t others = 0;
  for (const auto& [id, other] : attempts_.all())
    if (other.get() != &attempt && other->is_elastic()) others += other->milli_units;
  const uint64_t room = shared_milli() - std::min(shared_milli(), others);
  attempt.milli_units = static_cast<uint32_t>(
      std::max<uint64_t>(attempt.least_milli(), std::min<uint64_t>(attempt.milli_units, room)));
  confine(attempt);
  return attempt.milli_units;
}

uint32_t UnitShares::of(AttemptId id) const {
  const auto* attempt = attempts_.find(id);
  return attempt && (attempt->is_elastic() || attempt->has_share()) ? attempt->milli_units : 0;
}

std::vector<AttemptId> UnitShares::parts() const {
  std::vector<AttemptId> ids;
  for (const auto& [id, attempt] : attempts_.all())
    if (attempt->has_share()) ids.push_back(id);
  return ids;
}

// Others on the unit keep what they have.
uint32_t UnitShares::set_part(Attempt& attempt, uint32_t milli) {
  uint32_t room = kMilli;
  for (const auto& [id, other] : attempts_.all())
    if (other.get() != &attempt && other->has_share() &&
        other->assignment.part->unit == attempt.assignment.part->unit)
      room -= std::min(room, other->milli_units);
  return attempt.milli_units = std::clamp(milli, 1u, std::max(room, 1u));
}

uint64_t UnitShares::shared_milli() const {
  uint64_t units = cpus_.units();
  for (const auto& [id, attempt] : attempts_.all())
    if (attempt->stage == Stage::kRunning && !attempt->is_elastic())
      units -= attempt->grant.units.size();
  return units * kMilli;
}

// What is more than the least is lent: it shrinks in proportion when other tasks need the units.
void UnitShares::fit() {
  uint64_t least = 0, lent = 0;
  for (const auto& [id, attempt] : attempts_.all()) {
    if (!attempt->is_elastic()) continue;
    least += attempt->least_milli();
    lent += attempt->milli_units - attempt->least_milli();
  }
  if (least == 0) return;
  const uint64_t room = shared_milli() - std::min(shared_milli(), least);
  for (const auto& [id, attempt] : attempts_.all()) {
    if (!attempt->is_elastic()) continue;
    const uint64_t extra = attempt->milli_units - attempt->least_milli();
    if (lent > room)
      attempt->milli_units = static_cast<uint32_t>(attempt->least_milli() + extra * room / lent);
    confine(*attempt);
  }
}

void UnitShares::confine(Attempt& attempt) {
  std::vector<uint32_t> taken;
  for (const auto& [id, other] : attempts_.all())
    if (other->stage == Stage::kRunning && !other->is_elastic())
      taken.insert(taken.end(), other->grant.units.begin(), other->grant.units.end());
  tell(attempt, {cpus_.cpus_without(taken), attempt.milli_units * cpus_.cores_per_unit() / kMilli});
}

void UnitShares::confine_part(Attempt& attempt) {
  const auto& [cpus, gpu] = unit_of(attempt);
  if (gpu.empty())
    tell(attempt, {cpus, static_cast<double>(cpus.size()) * attempt.milli_units / kMilli});
  else if (attempt.pid != 0)
    runner_.confine_gpu(attempt.id(), attempt.milli_units);
}

void UnitShares::tell(Attempt& attempt, CpuShare share) {
  // One without processes is told when it has them.
  if (attempt.pid == 0 || share == attempt.confined) return;
  attempt.confined = share;
  runner_.confine(attempt.id(), share);
}

}  // namespace tierpilot::agent
