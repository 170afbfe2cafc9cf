#include "policies/sim/sharing/time_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tierpilot::sharing {
namespace {

using nlohmann::ordered_json;

double part(double of, double all) {
  return all > 0 ? of / all : 1;
}

ordered_json policy_json(const std::string& policy, const std::vector<TimedRun>& runs) {
  const auto mean = [&](auto value) {
    double sum = 0;
    for (const auto& run : runs) sum += value(run);
    return sum / static_cast<double>(runs.size());
  };
  double least_kept = 1;
  for (const auto& run : runs) least_kept = std::min(least_kept, part(run.kept, run.made));
  return {
      {"policy", policy},
      {"promises_kept_of_made", mean([](const TimedRun& r) { return part(r.kept, r.made); })},
      {"promises_kept_of_made_least", least_kept},
      {"promises_made", mean([](const TimedRun& r) { return part(r.made, r.asked); })},
      {"promises_kept_of_asked", mean([](const TimedRun& r) { return part(r.kept, r.asked); })},
      {"best_effort_throughput_units", mean([](const TimedRun& r) { return r.best_effort_per_h; })},
      {"best_effort_completion_s", mean([](const TimedRun& r) { return r.best_effort_mean_s; })},
      {"used", mean([](const TimedRun& r) { return r.used; })},
      {"given", mean([](const TimedRun& r) { return r.given; })},
      {"given_minus_used", mean([](const TimedRun& r) { return r.given - r.used; })},
      {"preemptions", mean([](const TimedRun& r) { return r.preemptions; })},
      {"lost_s", mean([](const TimedRun& r) { return r.lost_s; })},
      {"slowed_by_neighbours", mean([](const TimedRun& r) { return r.slowed; })},
      {"makespan_s", mean([](const TimedRun& r) { return r.makespan_s; })}};
}

}  // namespace

Result<ordered_json> run_timed_suite(const TimedSuite& suite) {
  auto policies = suite.policies;
  if (policies.empty()) {
    policies = share_policies().names();
    policies.emplace_back(kClairvoyant);
  }
  ordered_json rows = ordered_json::array();
  double done = 0;
  for (const auto& policy : policies) {
    std::vector<TimedRun> runs;
    for (uint32_t i = 0; i < suite.seeds; ++i) {
      auto run = run_timed(policy, suite.first_seed + i, suite.settings, suite.rules);
      if (!run) return tl::unexpected(run.error());
      runs.push_back(*run);
      if (suite.progress)
        suite.progress(++done / static_cast<double>(policies.size() * suite.seeds));
    }
    rows.push_back(policy_json(policy, runs));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a["promises_kept_of_made"] < b["promises_kept_of_made"];  // the worst first
  });
  return ordered_json{{"settings",
                       {{"units", suite.settings.units},
                        {"jobs", suite.settings.jobs},
                        {"load", suite.settings.load},
                        {"seeds", suite.seeds},
                        {"first_seed", suite.first_seed}}},
                      {"policies", rows}};
}

}  // namespace tierpilot::sharing
