// tierctl policy evaluate --suite sharing --in-time.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "policies/sim/sharing/time_report.h"
#include "tools/lab/policies.h"
#include "tools/lab/progress_bar.h"
#include "tools/lab/sharing.h"

namespace tierpilot::lab {
namespace {

// Of traces; what is drawn altogether has the numbers of TimedSettings. All of openb's list, and a
// load that its units can carry: over months the demand is for weeks 1.6 times its mean.
constexpr uint32_t kTraceJobs = 6500;
constexpr double kTraceLoad = 0.6;

const std::vector<Column> kInTime{
    {"JOBS", "/jobs"},
    {"POLICY", "/policy"},
    {"KEPT OF MADE", "/promises_kept_of_made", Format::kPercent},
    {"WORST SEED", "/promises_kept_of_made_least", Format::kPercent},
    {"MADE", "/promises_made", Format::kPercent},
    {"OF THEM ON TRIAL", "/promises_made_on_trial", Format::kPercent},
    {"KEPT OF ALL", "/promises_kept_of_asked", Format::kPercent},
    {"BEST EFFORT UNITS", "/best_effort_throughput_units", Format::kNumber},
    {"DONE AFTER s", "/best_effort_completion_s", Format::kNumber},
    {"USED", "/used", Format::kPercent},
    {"GIVEN", "/given", Format::kPercent},
    {"PREEMPTIONS", "/preemptions", Format::kNumber},
    {"LOST s", "/lost_s", Format::kNumber},
    {"SLOWED", "/slowed_by_neighbours", Format::kPercent}};

const std::vector<Column> kBounds{
    {"JOBS", "/jobs"},
    {"POLICY", "/policy"},
    {"HOLDS FOR", "/holds_for"},
    {"KEPT OF ALL AT MOST", "/promises_kept_of_asked", Format::kPercent},
    {"BEST EFFORT UNITS AT MOST", "/best_effort_throughput_units", Format::kNumber},
    {"DONE AFTER s AT LEAST", "/best_effort_completion_s", Format::kNumber}};

const std::vector<Column> kSources{{"JOBS", "/jobs"},
                                   {"IN TRACE", "/in_trace", Format::kNumber},
                                   {"SIMULATED", "/simulated", Format::kNumber},
                                   {"OF SEVERAL UNITS", "/of_several_units", Format::kNumber},
                                   {"WITH PROMISE", "/latency_sensitive", Format::kNumber},
                                   {"UNITS", "/units", Format::kNumber},
                                   {"DAYS", "/days", Format::kNumber},
                                   {"SKIPPED", "/skipped_text"}};

Result<std::vector<sharing::JobSource>> open_sources(const SharingInTimeOptions& options) {
  std::vector<sharing::JobSource> sources;
  if (!options.pods.empty()) {
    const auto pods = sharing::read_pods(options.pods, options.nodes);
    if (!pods) return tl::unexpected(pods.error());
    auto jobs = sharing::jobs_of_pods(*pods, "pods");
    if (!jobs) return tl::unexpected(jobs.error());
    sources.push_back(std::move(*jobs));
  }
  if (!options.trace.empty()) {
    auto jobs = sharing::read_timed_jobs(options.trace, "trace");
    if (!jobs) return tl::unexpected(jobs.error());
    sources.push_back(std::move(*jobs));
  }
  return sources;
}

// What people read of it, beside what programs do.
void add_texts(nlohmann::ordered_json& source) {
  constexpr double kDay_s = 86400;
  source["days"] = source["span_s"].get<double>() / kDay_s;
  std::string text;
  for (const auto& [reason, count] : source["skipped"].items())
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", reason, count.get<uint64_t>());
  if (const double count = source["left_out"].get<double>(); count > 0)
    text += fmt::format("{}models that no drawn unit has: {:.1f}", text.empty() ? "" : "; ", count);
  source["skipped_text"] = text;
}

std::vector<std::string> not_ended_by(const nlohmann::ordered_json& policies) {
  std::vector<std::string> said;
  for (const auto& row : policies)
    if (const double jobs = row["not_ended"].get<double>(); jobs > 0)
      said.push_back(
          fmt::format("with '{}' {:.1f} jobs of '{}' waited on when nothing else "
                      "happened, in the mean: of promises they count as broken, and "
                      "they are in no other figure",
                      row["policy"].get<std::string>(), jobs, row["jobs"].get<std::string>()));
  return said;
}

}  // namespace

int evaluate_shares_in_time(const Output& output, const SharingInTimeOptions& options) {
  auto sources = open_sources(options);
  if (!sources) return print_error(output, sources.error());
  sharing::TimedSuite suite;
  suite.policies = options.policies;
  suite.seeds = options.seeds;
  suite.first_seed = options.first_seed;
  suite.sources = std::move(*sources);
  if (!suite.sources.empty()) {
    suite.settings.jobs = kTraceJobs;
    suite.settings.load = kTraceLoad;
  }
  suite.settings.jobs = options.jobs.value_or(suite.settings.jobs);
  suite.settings.load = options.load.value_or(suite.settings.load);
  ProgressBar bar(stderr, isatty(STDERR_FILENO) == 1);
  suite.progress = [&](double share) { bar.show(share); };
  auto value = sharing::run_timed_suite(suite);
  bar.clear();
  if (!value) return refuse(output, value.error());
  std::vector<Table> tables{
      {.title = "Shares in time, means over seeds, the fewest promises kept first",
       .rows = "/in_time/policies",
       .columns = kInTime},
      {.title = "What no policy does better, means over seeds",
       .rows = "/in_time/bounds",
       .columns = kBounds}};
  for (auto& source : (*value)["jobs"]) add_texts(source);
  auto warnings = not_ended_by((*value)["policies"]);
  for (const auto& source : suite.sources)
    if (!source.first_skipped.empty())
      warnings.push_back(fmt::format("rows were skipped: {}", source.first_skipped));
  if (!suite.sources.empty())
    tables.push_back(
        {.title = "Their jobs, means over seeds", .rows = "/in_time/jobs", .columns = kSources});
  return print(output, {{"suite", kSharingSuite}, {"in_time", *value}}, tables, warnings);
}

}  // namespace tierpilot::lab
