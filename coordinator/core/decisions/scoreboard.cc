#include "coordinator/core/decisions/scoreboard.h"

#include <algorithm>

namespace tierpilot {

void Scoreboard::decided(const std::string& policy, int64_t decide_ns) {
  auto& score = scores_[policy];
  ++score.decisions;
  score.decide_ns.add(static_cast<uint64_t>(std::max<int64_t>(decide_ns, 0)));
}

void Scoreboard::rewarded(const std::string& policy, double reward) {
  auto& score = scores_[policy];
  ++score.rewards;
  score.reward_sum += reward;
}

void Scoreboard::kept_back(const std::string& policy, int64_t kept_ns, bool reached) {
  auto& score = scores_[policy];
  score.kept_back_ns.add(static_cast<uint64_t>(std::max<int64_t>(kept_ns, 0)));
  score.kept_back_reached += reached;
}

void Scoreboard::ended(const Task& task) {
  const auto since_submitted_ns = [&](int64_t at_ms) {
    return static_cast<uint64_t>(std::max<int64_t>(at_ms - task.submitted_ms, 0)) * 1'000'000;
  };
  ++ends_.tasks[task.state];
  if (task.started_ms > 0) ends_.wait_ns.add(since_submitted_ns(task.started_ms));
  ends_.response_ns.add(since_submitted_ns(task.finished_ms));
}

void Scoreboard::units_changed(int64_t now_ns, uint32_t busy, uint32_t total) {
  busy_ms_ = busy_unit_ms(now_ns);
  capacity_ms_ = capacity_unit_ms(now_ns);
  since_ns_ = now_ns;
  busy_ = busy;
  total_ = total;
}

double Scoreboard::busy_unit_ms(int64_t now_ns) const {
  return busy_ms_ + static_cast<double>(now_ns - since_ns_) / 1e6 * busy_;
}

double Scoreboard::capacity_unit_ms(int64_t now_ns) const {
  return capacity_ms_ + static_cast<double>(now_ns - since_ns_) / 1e6 * total_;
}

}  // namespace tierpilot
