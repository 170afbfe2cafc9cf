// The compute units of all nodes, as gangs use them: what befell each and what was ordered of it.
// Event loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/core/nodes/registry.h"
#include "coordinator/records/known_units.h"
#include "model/unit_id.h"

namespace tierpilot {

// A failure that a node's daemon tells, until it hears that it is on disk: the event's number says
// which of that daemon's it is.
std::string told_as(const NodeFacts& teller, uint64_t event);

// Of failures an hour; `low` to `high` holds 90 %.
struct UnitFailureRate {
  double mean = 0;
  double low = 0;
  double high = 0;
  double shape = 1;  // of the Gamma distribution that it is estimated by: the larger, the surer
};

class UnitBook {
 public:
  static constexpr std::string_view kQuarantine = "by rule: ";  // begins its reasons

  // Units that are new have been in service since now. Gives the new ones.
  std::vector<std::string> add(const NodeFacts& facts, int64_t now_ms);
  void remember(const std::string& unit, int64_t since_ms) { since_ms_.emplace(unit, since_ms); }
  // From the store, before anything else.
  void restore(const KnownUnits& known);
  // All that is known of a node that is gone for good.
  void forget(const std::string& node);
  void failed(UnitFailure failure);
  // The failures of this gang were its own: none of its units is to blame.
  void forgive(uint64_t task);
  // Null: nobody has told it. Of a unit that was resumed since it has none.
  const UnitFailure* find(const std::string& told) const;
  void drain(const std::string& unit, const std::string& reason) { drains_[unit] = {reason}; }
  // By a rule: it counts at once, and is told once it is written. Where that fails it is none.
  void quarantine(const std::string& unit, const std::string& reason) {
    drains_[unit] = {reason, false};
  }
  void quarantine_written(const std::string& unit, bool on_disk);
  // Also forgets what counted against it.
  void resume(const std::string& unit);

  // As its node says now of all its units that are to get no new work, by unit. Gives those of
  // which something else is said than before; an empty reason: it is well again.
  std::map<std::string, std::string> say_unhealthy(const std::string& node,
                                                   std::map<std::string, std::string> reasons);
  // Empty: nothing is wrong with it.
  std::string unhealthy_because(const std::string& unit) const;

  // While a gang has it; 0: none has.
  void take(const std::string& unit, uint64_t gang) { users_[unit] = gang; }
  void give_back(const std::string& unit) { users_.erase(unit); }
  uint64_t user_of(const std::string& unit) const {
    const auto user = users_.find(unit);
    return user == users_.end() ? 0 : user->second;
  }

  const std::map<std::string, int64_t>& all() const { return since_ms_; }
  bool is_known(const std::string& unit) const { return since_ms_.contains(unit); }
  // By a rule, not by somebody, as may be told.
  bool is_quarantined(const std::string& unit) const {
    return told_drain(unit).starts_with(kQuarantine);
  }
  // Whether its failures since then are as many as a rule allows, and why it is to be taken out of
  // service; empty: it stays, is out already, or too many of all units are out by the rule.
  std::string quarantine_reason(const std::string& unit, uint32_t most, int64_t since_ms) const;
  // Empty: it is not drained.
  std::string drained_because(const std::string& unit) const;
  // The same, as may be told: one that is not on disk a power cut would undo.
  std::string told_drain(const std::string& unit) const;
  // Drained, or unhealthy as its node says.
  std::set<std::string> out_of_service() const;
  uint64_t failures(const std::string& unit) const;
  const std::vector<UnitFailure>& all_failures() const { return failures_; }

  // Of every unit, by policies/gang/rates on all that is known; reckoned anew after a failure, and
  // when the last time is long ago.
  const std::map<std::string, UnitFailureRate>& rates(int64_t now_ms) const;

 private:
  std::map<std::string, int64_t> since_ms_;  // in service
  std::vector<UnitFailure> failures_;        // by time, the last ones
  struct Drain {
    std::string reason;
    bool on_disk = true;
  };
  std::map<std::string, Drain> drains_;
  std::map<std::string, std::map<std::string, std::string>> unhealthy_;  // by node, by unit
  std::map<std::string, uint64_t> users_;
  mutable std::map<std::string, UnitFailureRate> rates_;
  mutable int64_t reckoned_ms_ = INT64_MIN;
};

}  // namespace tierpilot
