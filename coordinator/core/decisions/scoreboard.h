// What the policies have achieved and how busy the cluster was, since the coordinator started.
// Event loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/histogram.h"
#include "coordinator/model.h"

namespace tierpilot {

class Scoreboard {
 public:
  struct PolicyScore {
    uint64_t decisions = 0;
    uint64_t fallbacks = 0;
    uint64_t rewards = 0;
    double reward_sum = 0;
    Histogram decide_ns;
    // Of the tasks that were kept back while it was active and placed since, from when they were
    // first asked about.
    Histogram kept_back_ns;
    uint64_t kept_back_reached = 0;  // of them, placed where they had waited to be
  };

  // Of tasks whose end is on disk.
  struct Ends {
    std::map<TaskState, uint64_t> tasks;
    Histogram wait_ns;      // from the submission to the last start
    Histogram response_ns;  // to the end
  };

  void decided(const std::string& policy, int64_t decide_ns);
  void fell_back(const std::string& policy) { ++scores_[policy].fallbacks; }
  void rewarded(const std::string& policy, double reward);
  void kept_back(const std::string& policy, int64_t kept_ns, bool reached);
  const std::map<std::string, PolicyScore>& policies() const { return scores_; }
  const PolicyScore& of(const std::string& policy) { return scores_[policy]; }

  void ended(const Task& task);
  const Ends& ends() const { return ends_; }

  // Called at every change of the busy or of the present units, with what holds from now on.
  void units_changed(int64_t now_ns, uint32_t busy, uint32_t total);
  // Integrals over time; utilisation over a period is the quotient of their differences.
  double busy_unit_ms(int64_t now_ns) const;
  double capacity_unit_ms(int64_t now_ns) const;

 private:
  std::map<std::string, PolicyScore> scores_;
  Ends ends_;
  int64_t since_ns_ = 0;
  uint32_t busy_ = 0;
  uint32_t total_ = 0;
  double busy_ms_ = 0;
  double capacity_ms_ = 0;
};

}  // namespace tierpilot
