#include "tools/demo/jobs/gang_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/output/output.h"

namespace tierpilot::demo {
namespace {

using nlohmann::ordered_json;

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

std::vector<double> completions_s(const GangRun& run) {
  std::vector<double> all;
  for (const auto& job : run.jobs)
    if (job.finished_s > 0) all.push_back(job.finished_s - job.submitted_s);
  std::sort(all.begin(), all.end());
  return all;
}

ordered_json policy_row(const GangRun& run) {
  const auto all = completions_s(run);
  double sum = 0, lost = 0, begin = 0, end = 0;
  uint32_t restarts = 0;
  for (const double one : all) sum += one;
  for (const auto& job : run.jobs) {
    restarts += job.restarts;
    lost += job.lost_unit_s;
    begin = begin == 0 ? job.submitted_s : std::min(begin, job.submitted_s);
    end = std::max(end, job.finished_s);
  }
  const auto failed = std::count_if(run.jobs.begin(), run.jobs.end(),
                                    [](const auto& job) { return job.state != "succeeded"; });
  const double room = run.wall_s * run.cluster_units;
  ordered_json completion{{"mean", nullptr}, {"p99", nullptr}};
  if (!all.empty()) {
    const auto place = std::ceil(0.99 * static_cast<double>(all.size())) - 1;
    completion["mean"] = sum / static_cast<double>(all.size());
    completion["p99"] = all[static_cast<size_t>(place)];
  }
  return {{"name", run.name},
          {"jobs", run.jobs.size()},
          {"failed", failed},
          {"restarts", restarts},
          {"makespan_s", end - begin},
          {"completion_s", completion},
          {"lost_unit_s", lost},
          {"utilisation", room > 0 ? ordered_json(run.busy_unit_s / room) : ordered_json()},
          {"failures_made", run.kills + run.xids},
          {"xids", run.xids}};
}

void add_jobs(const GangRun& undisturbed, const GangRun& run, ordered_json& jobs) {
  for (size_t i = 0; i < run.jobs.size(); ++i) {
    const auto& job = run.jobs[i];
    jobs.push_back({{"policy", run.name},
                    {"name", job.name},
                    {"state", job.state},
                    {"ranks", job.ranks},
                    {"restarts", job.restarts},
                    {"loss", or_null(job.loss)},
                    {"undisturbed_loss", or_null(undisturbed.jobs.at(i).loss)},
                    {"checkpoints", job.checkpoints},
                    {"checkpoint_stall_ms", job.stall_ms}});
  }
}

void add_units(const GangRun& run, ordered_json& units) {
  for (const auto& unit : run.units)
    units.push_back({{"policy", run.name},
                     {"id", unit["id"]},
                     {"engine", unit["engine"]},
                     {"failures", unit["failures"]},
                     {"rate_per_h", unit["rate_per_hour"]},
                     {"low", unit["rate_low"]},
                     {"high", unit["rate_high"]},
                     {"state", unit["state"]}});
}

}  // namespace

ordered_json gang_report(const GangRun& undisturbed, const std::vector<GangRun>& runs) {
  ordered_json report{{"schema", 1},
                      {"loss_tolerance", kLossTolerance},
                      {"policies", ordered_json::array()},
                      {"jobs", ordered_json::array()},
                      {"units", ordered_json::array()}};
  for (const auto& run : runs) {
    report["policies"].push_back(policy_row(run));
    add_jobs(undisturbed, run, report["jobs"]);
    add_units(run, report["units"]);
  }
  return report;
}

std::vector<std::string> gang_faults(const ordered_json& report) {
  std::vector<std::string> faults;
  for (const auto& job : report["jobs"]) {
    const auto who =
        fmt::format("{}: {}", job["policy"].get<std::string>(), job["name"].get<std::string>());
    if (job["state"] != "succeeded") {
      faults.push_back(fmt::format("{} {}", who, job["state"].get<std::string>()));
    } else if (!job["loss"].is_number() || !job["undisturbed_loss"].is_number()) {
      faults.push_back(who + " told no loss");
    } else {
      const double loss = job["loss"], undisturbed = job["undisturbed_loss"];
      if (!(std::abs(loss - undisturbed) <= kLossTolerance * std::abs(undisturbed)))
        faults.push_back(
            fmt::format("{} ended with loss {:.6g}, undisturbed {:.6g}", who, loss, undisturbed));
    }
  }
  return faults;
}

void print_gang_report(std::ostream& out, const ordered_json& report) {
  const std::vector<Table> tables{
      {.title = "Policies",
       .rows = "/policies",
       .columns = {{"POLICY", "/name"},
                   {"JOBS", "/jobs"},
                   {"FAILED", "/failed"},
                   {"FAILURES", "/failures_made"},
                   {"XIDS", "/xids"},
                   {"RESTARTS", "/restarts"},
                   {"MAKESPAN s", "/makespan_s", Format::kNumber},
                   {"COMPLETION s", "/completion_s/mean", Format::kNumber},
                   {"LOST UNIT s", "/lost_unit_s", Format::kNumber},
                   {"UTILISATION", "/utilisation", Format::kPercent}}},
      {.title = "Jobs",
       .rows = "/jobs",
       .columns = {{"POLICY", "/policy"},
                   {"JOB", "/name"},
                   {"RANKS", "/ranks"},
                   {"RESTARTS", "/restarts"},
                   {"LOSS", "/loss", Format::kNumber},
                   {"UNDISTURBED", "/undisturbed_loss", Format::kNumber},
                   {"CHECKPOINTS", "/checkpoints"},
                   {"WAITED ms", "/checkpoint_stall_ms", Format::kNumber}}},
      {.title = "Units, failures an hour with the interval that holds them with 90 %",
       .rows = "/units",
       .columns = {{"POLICY", "/policy"},
                   {"UNIT", "/id"},
                   {"STATE", "/state"},
                   {"FAILURES", "/failures"},
                   {"RATE", "/rate_per_h", Format::kNumber},
                   {"LOW", "/low", Format::kNumber},
                   {"HIGH", "/high", Format::kNumber}}}};
  for (const auto& table : tables) out << "\n" << format_table(report, table);
}

}  // namespace tierpilot::demo
