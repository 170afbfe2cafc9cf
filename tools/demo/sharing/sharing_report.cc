#include "tools/demo/sharing/sharing_report.h"

#include <algorithm>

#include "tools/output/output.h"

namespace tierpilot::demo {
namespace {

using nlohmann::ordered_json;

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json policy_json(const SharingRun& run) {
  size_t failed = 0, promises = 0, kept = 0, refused = 0, best_effort = 0;
  double completion_s = 0, cpu_s = 0;
  uint32_t preemptions = 0;
  for (const auto& job : run.jobs) {
    failed += job.state != "succeeded";
    promises += job.promise_s.has_value();
    kept += job.kept().value_or(false);
    refused += job.refused_promise_s.has_value();
    preemptions += job.preemptions;
    cpu_s += job.cpu_s();
    if (job.plan.latency_sensitive) continue;
    ++best_effort;
    completion_s += job.finished_s - job.submitted_s;
  }
  const double makespan_s = run.end_s - run.begin_s;
  return {{"name", run.policy},
          {"jobs", run.jobs.size()},
          {"failed", failed},
          {"promises", promises},
          {"promises_kept", kept},
          {"promises_refused", refused},
          {"best_effort_completion_s",
           {{"mean", best_effort > 0 ? ordered_json(completion_s / static_cast<double>(best_effort))
                                     : ordered_json()}}},
          {"makespan_s", makespan_s},
          {"preemptions", preemptions},
          {"utilisation", cpu_s / std::max(1e-9, makespan_s * run.units)}};
}

ordered_json job_json(const SharingRun& run, const SharingJob& job) {
  const auto kept = job.kept();
  return {{"policy", run.policy},
          {"name", job.plan.name},
          {"class", job.plan.latency_sensitive ? "latency-sensitive" : "best-effort"},
          {"predicted_utilisation", job.predicted_utilisation},
          {"measured_utilisation", or_null(job.measured_utilisation)},
          {"predicted_s", or_null(job.predicted_s)},
          {"measured_s", job.ran_s()},
          {"response_s", job.finished_s - job.submitted_s},
          {"promise_s", or_null(job.promise_s)},
          {"refused_promise_s", or_null(job.refused_promise_s)},
          {"refusal", job.refused_promise_s ? ordered_json(job.refusal) : ordered_json()},
          {"kept", kept ? ordered_json(*kept) : ordered_json()}};
}

void print_refusals(std::ostream& out, const ordered_json& report) {
  ordered_json refused = ordered_json::array();
  for (auto job : report["jobs"]) {
    if (job["refusal"].is_null()) continue;
    const auto why = job["refusal"].get<std::string>();
    job["why"] = why.substr(0, why.find(';'));  // without what could be asked for instead
    refused.push_back(std::move(job));
  }
  if (refused.empty()) return;
  out << '\n'
      << format_table({{"jobs", refused}},
                      {.title = "Promises that were not made",
                       .rows = "/jobs",
                       .columns = {{"POLICY", "/policy"},
                                   {"WHY", "/why"},
                                   {"DONE AFTER s", "/response_s", Format::kNumber}}});
}

}  // namespace

ordered_json sharing_report(const std::vector<SharingRun>& runs) {
  auto policies = ordered_json::array(), jobs = ordered_json::array();
  for (const auto& run : runs) {
    policies.push_back(policy_json(run));
    for (const auto& job : run.jobs) jobs.push_back(job_json(run, job));
  }
  return {{"schema", 1},
          {"enforcement", runs.empty() ? ordered_json() : ordered_json(runs.front().enforcement)},
          {"policies", policies},
          {"jobs", jobs}};
}

void print_sharing_report(std::ostream& out, const ordered_json& report) {
  out << '\n'
      << format_table(report,
                      {.title = "Jobs",
                       .rows = "/jobs",
                       .columns = {{"POLICY", "/policy"},
                                   {"JOB", "/name"},
                                   {"CLASS", "/class"},
                                   {"USE PREDICTED", "/predicted_utilisation", Format::kPercent},
                                   {"MEASURED", "/measured_utilisation", Format::kPercent},
                                   {"RUN PREDICTED s", "/predicted_s", Format::kNumber},
                                   {"RAN s", "/measured_s", Format::kNumber},
                                   {"DONE AFTER s", "/response_s", Format::kNumber},
                                   {"PROMISED s", "/promise_s", Format::kNumber},
                                   {"KEPT", "/kept"}}})
      << '\n'
      << format_table(report, {.title = "Policies",
                               .rows = "/policies",
                               .columns = {{"POLICY", "/name"},
                                           {"FAILED", "/failed"},
                                           {"PROMISES", "/promises"},
                                           {"KEPT", "/promises_kept"},
                                           {"NOT MADE", "/promises_refused"},
                                           {"BEST EFFORT DONE AFTER s",
                                            "/best_effort_completion_s/mean", Format::kNumber},
                                           {"ALL DONE AFTER s", "/makespan_s", Format::kNumber},
                                           {"PREEMPTIONS", "/preemptions"},
                                           {"UNITS USED", "/utilisation", Format::kPercent}}});
  print_refusals(out, report);
}

}  // namespace tierpilot::demo
