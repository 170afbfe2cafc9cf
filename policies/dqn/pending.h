// Experiences that still wait: for the measured reward, which comes seconds or hours after the
// decision, and for the next observation, which comes with the next decided request.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "policies/dqn/replay.h"

namespace tierpilot {

struct PendingExperience {
  uint64_t id = 0;
  std::shared_ptr<const Observation> seen;
  std::shared_ptr<const Observation> next;  // null: no later request was decided yet
  uint32_t action = 0;                      // slot
  std::optional<double> reward;
};

// Not thread-safe.
class PendingTable {
 public:
  // Beyond `capacity` the oldest gives way.
  explicit PendingTable(size_t capacity) : capacity_(capacity) {}

  // A request was decided (or decided anew: then only the action changes).
  void decided(uint64_t id, std::shared_ptr<const Observation> seen, uint32_t action);
  // False: the id is not (or no longer) here.
  bool outcome(uint64_t id, double reward);
  bool abandon(uint64_t id);
  bool contains(uint64_t id) const { return entries_.count(id) != 0; }
  // Experiences that became complete since the last call.
  std::vector<Experience> take_complete();

  size_t size() const { return entries_.size(); }
  uint64_t dropped() const { return dropped_; }
  // Oldest decision first; restore() expects the same order.
  std::vector<PendingExperience> snapshot() const;
  void restore(std::vector<PendingExperience> entries);

 private:
  void complete_if_known(uint64_t id);

  size_t capacity_;
  std::unordered_map<uint64_t, PendingExperience> entries_;
  std::deque<uint64_t> order_;  // ids by decision, with gaps where an entry has gone
  std::optional<uint64_t> newest_;
  std::vector<Experience> complete_;
  uint64_t dropped_ = 0;
};

}  // namespace tierpilot
