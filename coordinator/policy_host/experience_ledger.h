// Which requests are being decided, and what is known of those that were. Thread-safe; its lock is
// only ever held for table operations, and never by the low-priority training thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "policies/dqn/pending.h"

namespace tierpilot {

class ExperienceLedger {
 public:
  using ObservationPtr = std::shared_ptr<const Observation>;

  explicit ExperienceLedger(size_t pending_capacity) : pending_(pending_capacity) {}

  void requested(uint64_t id);
  // False: not wanted any more, because it was overridden or abandoned meanwhile.
  bool still_wanted(uint64_t id) const;
  // Notes a decision that is still wanted; false as above, and then nothing is noted. A null
  // observation notes a decision that nothing can be learned from.
  bool decided(uint64_t id, ObservationPtr seen, uint32_t slot);
  void overridden(uint64_t id, ObservationPtr seen, uint32_t slot);
  void outcome(uint64_t id, double reward);
  void abandon(uint64_t id);
  // Experiences that became complete since the last call.
  std::vector<Experience> take_complete();

  uint64_t decisions() const;
  size_t pending() const;
  uint64_t pending_dropped() const;
  std::vector<PendingExperience> snapshot() const;
  void restore(std::vector<PendingExperience> entries, uint64_t decisions);

 private:
  void note(uint64_t id, ObservationPtr seen, uint32_t slot);

  mutable std::mutex mutex_;
  std::unordered_set<uint64_t> undecided_;
  PendingTable pending_;
  uint64_t decisions_ = 0;
};

}  // namespace tierpilot
