#include "tools/demo/rounds.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace tierpilot::demo {

std::vector<std::string> order_of_round(std::vector<std::string> policies, size_t round) {
  if (!policies.empty())
    std::rotate(policies.begin(),
                policies.begin() + static_cast<ptrdiff_t>(round % policies.size()), policies.end());
  return policies;
}

PolicyRun pooled(const std::vector<PolicyRun>& rounds) {
  PolicyRun all = rounds.front();
  all.round_response_ms.clear();
  double utilised_s = 0, busy_s = 0;
  for (size_t i = 0; i < rounds.size(); ++i) {
    const auto& round = rounds[i];
    if (round.summary.response_ms) all.round_response_ms.push_back(round.summary.response_ms->mean);
    utilised_s += round.utilisation.value_or(0) * round.wall_s;
    busy_s += round.cpus_busy.value_or(0) * round.wall_s;
    if (i == 0) continue;
    all.tasks.insert(all.tasks.end(), round.tasks.begin(), round.tasks.end());
    all.reward_list.insert(all.reward_list.end(), round.reward_list.begin(),
                           round.reward_list.end());
    all.failures.insert(all.failures.end(), round.failures.begin(), round.failures.end());
    all.wall_s += round.wall_s;
    all.fallbacks += round.fallbacks;
    all.latest_submit_ms = std::max(all.latest_submit_ms, round.latest_submit_ms);
    all.decision_us = round.decision_us;  // since the coordinator's start
    all.learner_end = round.learner_end;
  }
  if (all.utilisation) all.utilisation = utilised_s / all.wall_s;
  if (all.cpus_busy) all.cpus_busy = busy_s / all.wall_s;
  all.summary = tierload::summarize(all.tasks);
  all.rewards = reward_stats(all.reward_list);
  return all;
}

std::optional<Difference> response_difference(const PolicyRun& of, const PolicyRun& against) {
  const size_t n = of.round_response_ms.size();
  if (n < 2 || n != against.round_response_ms.size()) return std::nullopt;
  std::vector<double> logs;
  for (size_t i = 0; i < n; ++i)
    logs.push_back(std::log(of.round_response_ms[i] / against.round_response_ms[i]));
  const double count = static_cast<double>(n);
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / count;
  double squares = 0;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  const double t = boost::math::quantile(boost::math::students_t(count - 1), 0.975);
  const double half = t * std::sqrt(squares / (count - 1) / count);
  const auto percent = [](double log) { return std::expm1(log) * 100; };
  return Difference{percent(mean), percent(mean - half), percent(mean + half), n};
}

const PolicyRun* best_heuristic(const std::vector<PolicyRun>& runs) {
  const PolicyRun* best = nullptr;
  for (const auto& run : runs) {
    if (!run.learner_end.is_null() || !run.summary.response_ms) continue;
    if (!best || run.summary.response_ms->mean < best->summary.response_ms->mean) best = &run;
  }
  return best;
}

}  // namespace tierpilot::demo
