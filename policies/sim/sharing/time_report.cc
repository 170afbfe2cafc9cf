#include "policies/sim/sharing/time_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "policies/sim/sharing/time_bound.h"
#include "policies/sim/sharing/timed_policies.h"
#include "policies/sim/sharing/traced_jobs.h"

namespace tierpilot::sharing {
namespace {

using nlohmann::ordered_json;

constexpr const char* kDrawn = "drawn";  // jobs that are of no trace

std::optional<double> part(double of, double all) {
  return all > 0 ? std::optional(of / all) : std::nullopt;
}

std::optional<double> if_any(double seconds) {
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

// Over the seeds in which there was something to measure; null: in none.
class Mean {
 public:
  void add(std::optional<double> value) {
    if (!value) return;
    sum_ += *value;
    ++count_;
  }
  ordered_json json() const { return count_ > 0 ? ordered_json(sum_ / count_) : ordered_json(); }

 private:
  double sum_ = 0;
  uint32_t count_ = 0;
};

ordered_json policy_json(const std::string& jobs, const std::string& policy,
                         const std::vector<TimedRun>& runs) {
  const auto mean = [&](auto value) {
    Mean of_all;
    for (const auto& run : runs) of_all.add(value(run));
    return of_all.json();
  };
  std::optional<double> least_kept;
  for (const auto& run : runs)
    if (const auto kept = part(run.kept, run.made))
      least_kept = std::min(least_kept.value_or(1), *kept);
  return {
      {"jobs", jobs},
      {"policy", policy},
      {"promises_kept_of_made", mean([](const TimedRun& r) { return part(r.kept, r.made); })},
      {"promises_kept_of_made_least", least_kept ? ordered_json(*least_kept) : ordered_json()},
      {"promises_made", mean([](const TimedRun& r) { return part(r.made, r.asked); })},
      {"promises_made_on_trial",
       mean([](const TimedRun& r) { return part(r.made_on_trial, r.asked); })},
      {"promises_kept_of_asked", mean([](const TimedRun& r) { return part(r.kept, r.asked); })},
      {"not_ended", mean([](const TimedRun& r) { return r.not_ended; })},
      {"best_effort_throughput_units", mean([](const TimedRun& r) { return r.best_effort_units; })},
      {"best_effort_completion_s",
       mean([](const TimedRun& r) { return if_any(r.best_effort_mean_s); })},
      {"used", mean([](const TimedRun& r) { return r.used; })},
      {"given", mean([](const TimedRun& r) { return r.given; })},
      {"given_minus_used", mean([](const TimedRun& r) { return r.given - r.used; })},
      {"preemptions", mean([](const TimedRun& r) { return r.preemptions; })},
      {"lost_s", mean([](const TimedRun& r) { return r.lost_s; })},
      {"slowed_by_neighbours", mean([](const TimedRun& r) { return r.slowed; })},
      {"makespan_s", mean([](const TimedRun& r) { return r.makespan_s; })}};
}

// Of all policies that are asked for the promises that this one is asked for.
ordered_json bound_json(std::string_view name, std::string_view policy, std::string_view holds_for,
                        const TimedSuite& suite, const JobSource* source) {
  Mean kept, best_effort_s, best_effort_units;
  for (uint32_t i = 0; i < suite.seeds; ++i) {
    const auto bound = bound_of(workload_for(policy, suite.first_seed + i, suite.settings, source));
    kept.add(part(bound.kept, bound.asked));
    best_effort_s.add(if_any(bound.best_effort_mean_s));
    best_effort_units.add(bound.best_effort_units);
  }
  return {{"jobs", source ? source->name : kDrawn},
          {"policy", name},
          {"holds_for", holds_for},
          {"promises_kept_of_asked", kept.json()},
          {"best_effort_throughput_units", best_effort_units.json()},
          {"best_effort_completion_s", best_effort_s.json()}};
}

void add_bounds(const TimedSuite& suite, const JobSource* source, ordered_json& bounds) {
  bounds.push_back(bound_json("bound", "share", "all but clairvoyant", suite, source));
  bounds.push_back(bound_json("bound-by-truth", kClairvoyant, "clairvoyant", suite, source));
}

// Means over seeds of what is drawn from a trace.
ordered_json source_json(const JobSource& source, const TimedSuite& suite) {
  double units = 0, jobs = 0, several = 0, sensitive = 0, not_placed = 0, span_s = 0;
  for (uint32_t i = 0; i < suite.seeds; ++i) {
    const auto workload = timed_workload(source, suite.first_seed + i, suite.settings);
    units += workload.units;
    not_placed += static_cast<double>(left_out(source, suite.settings, workload));
    for (const auto& job : workload.jobs) {
      if (job.id != job.whole_id()) continue;
      ++jobs;
      if (job.first_part > 0) ++several;
      if (job.job_class == JobClass::kLatencySensitive) ++sensitive;
    }
    if (!workload.jobs.empty()) span_s += workload.jobs.back().arrival_s;
  }
  ordered_json value{{"jobs", source.name},
                     {"in_trace", source.jobs.size()},
                     {"skipped", source.skipped},
                     {"units", units / suite.seeds},
                     {"simulated", jobs / suite.seeds},
                     {"of_several_units", several / suite.seeds},
                     {"latency_sensitive", sensitive / suite.seeds},
                     {"left_out", not_placed / suite.seeds},
                     {"span_s", span_s / suite.seeds}};
  if (!source.first_skipped.empty()) value["first_skipped"] = source.first_skipped;
  return value;
}

std::vector<std::string> policies_of(const TimedSuite& suite) {
  return suite.policies.empty() ? timed_policies() : suite.policies;
}

// A row for each policy.
Status add_rows(const TimedSuite& suite, const JobSource* source,
                const std::function<void()>& run_done, ordered_json& rows) {
  TimedRules rules = suite.rules;
  if (source) rules.period_part = kTracePeriodPart;
  for (const auto& policy : policies_of(suite)) {
    std::vector<TimedRun> runs;
    for (uint32_t i = 0; i < suite.seeds; ++i) {
      auto run = run_timed(policy, suite.first_seed + i, suite.settings, rules, source);
      if (!run) return tl::unexpected(run.error());
      runs.push_back(*run);
      run_done();
    }
    rows.push_back(policy_json(source ? source->name : kDrawn, policy, runs));
  }
  return {};
}

}  // namespace

Result<ordered_json> run_timed_suite(const TimedSuite& suite) {
  ordered_json rows = ordered_json::array(), sources = rows, bounds = rows;
  const size_t all =
      policies_of(suite).size() * suite.seeds * std::max<size_t>(1, suite.sources.size());
  double done = 0;
  const auto run_done = [&] {
    if (suite.progress) suite.progress(++done / static_cast<double>(all));
  };
  if (suite.sources.empty()) {
    if (auto status = add_rows(suite, nullptr, run_done, rows); !status)
      return tl::unexpected(status.error());
    add_bounds(suite, nullptr, bounds);
  }
  for (const auto& source : suite.sources) {
    if (auto status = add_rows(suite, &source, run_done, rows); !status)
      return tl::unexpected(status.error());
    sources.push_back(source_json(source, suite));
    add_bounds(suite, &source, bounds);
  }
  // The worst first; no number is the least.
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a["promises_kept_of_made"] < b["promises_kept_of_made"];
  });
  ordered_json settings{{"jobs", suite.settings.jobs},
                        {"load", suite.settings.load},
                        {"seeds", suite.seeds},
                        {"first_seed", suite.first_seed}};
  if (suite.sources.empty()) settings["units"] = suite.settings.units;
  return ordered_json{
      {"settings", settings}, {"jobs", sources}, {"policies", rows}, {"bounds", bounds}};
}

}  // namespace tierpilot::sharing
