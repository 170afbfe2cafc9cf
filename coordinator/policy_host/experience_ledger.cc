#include "coordinator/policy_host/experience_ledger.h"

#include <utility>

namespace tierpilot {

void ExperienceLedger::requested(uint64_t id) {
  const std::lock_guard lock(mutex_);
  undecided_.insert(id);
}

bool ExperienceLedger::still_wanted(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  return undecided_.count(id) != 0;
}

bool ExperienceLedger::decided(uint64_t id, ObservationPtr seen, uint32_t slot) {
  const std::lock_guard lock(mutex_);
  if (undecided_.erase(id) == 0) return false;
  note(id, std::move(seen), slot);
  return true;
}

void ExperienceLedger::overridden(uint64_t id, ObservationPtr seen, uint32_t slot) {
  const std::lock_guard lock(mutex_);
  undecided_.erase(id);
  note(id, std::move(seen), slot);
}

void ExperienceLedger::note(uint64_t id, ObservationPtr seen, uint32_t slot) {
  if (!pending_.contains(id)) ++decisions_;
  if (seen) pending_.decided(id, std::move(seen), slot);
}

void ExperienceLedger::outcome(uint64_t id, double reward) {
  const std::lock_guard lock(mutex_);
  pending_.outcome(id, reward);
}

void ExperienceLedger::abandon(uint64_t id) {
  const std::lock_guard lock(mutex_);
  undecided_.erase(id);
  pending_.abandon(id);
}

std::vector<Experience> ExperienceLedger::take_complete() {
  const std::lock_guard lock(mutex_);
  return pending_.take_complete();
}

uint64_t ExperienceLedger::decisions() const {
  const std::lock_guard lock(mutex_);
  return decisions_;
}

size_t ExperienceLedger::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_.size();
}

uint64_t ExperienceLedger::pending_dropped() const {
  const std::lock_guard lock(mutex_);
  return pending_.dropped();
}

std::vector<PendingExperience> ExperienceLedger::snapshot() const {
  const std::lock_guard lock(mutex_);
  return pending_.snapshot();
}

void ExperienceLedger::restore(std::vector<PendingExperience> entries, uint64_t decisions) {
  const std::lock_guard lock(mutex_);
  pending_.restore(std::move(entries));
  decisions_ = decisions;
}

}  // namespace tierpilot
