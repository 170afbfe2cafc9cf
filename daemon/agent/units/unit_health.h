// Which of the node's units are to get no new work, and why. Event loop thread only.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace tierpilot::agent {

class UnitHealth {
 public:
  explicit UnitHealth(std::function<void()> on_change) : on_change_(std::move(on_change)) {}

  // What one watcher says of a unit (cpu/NUMBER, gpu/UUID); an empty reason: nothing is wrong.
  // Gives whether that watcher had nothing against it before, and has now.
  bool say(const std::string& unit, const std::string& watcher, const std::string& reason) {
    auto& reasons = troubles_[unit];
    const bool breaks = !reason.empty() && !reasons.contains(watcher);
    const bool changes = reason.empty() ? reasons.erase(watcher) > 0 : reasons[watcher] != reason;
    if (!reason.empty()) reasons[watcher] = reason;
    if (reasons.empty()) troubles_.erase(unit);
    if (changes) on_change_();
    return breaks;
  }
  // By unit, of those in trouble; what several watchers say alike once.
  std::map<std::string, std::string> troubles() const {
    std::map<std::string, std::string> all;
    for (const auto& [unit, reasons] : troubles_) {
      std::set<std::string> said;
      for (const auto& [watcher, reason] : reasons)
        if (said.insert(reason).second) all[unit] += (all[unit].empty() ? "" : "; ") + reason;
    }
    return all;
  }

 private:
  std::map<std::string, std::map<std::string, std::string>> troubles_;  // by unit, by watcher
  std::function<void()> on_change_;
};

}  // namespace tierpilot::agent
