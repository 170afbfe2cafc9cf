#include "tools/demo/quality/quality_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "policies/sim/plot/chart.h"
#include "tools/output/output.h"

namespace tierpilot::demo {
namespace {

using nlohmann::ordered_json;

constexpr double kConverged = 0.10;           // of the loss left
constexpr std::array kGroups{0.2, 0.3, 0.5};  // of the jobs, those with the most loss left first

// Of each job, over all runs: they go the same way, and some may have been cut short.
std::vector<double> best_losses(const std::vector<AllocatorRun>& runs) {
  std::vector<double> best(runs.front().jobs.size(), INFINITY);
  for (const auto& run : runs)
    for (size_t i = 0; i < best.size(); ++i) best[i] = std::min(best[i], run.jobs[i].best());
  return best;
}

// The cores given to each group of the jobs that run, as parts of all given. A job on the border of
// two counts for both.
std::array<double, 3> cores_by_loss_group(const AllocatorRun& run,
                                          const std::vector<double>& best) {
  std::array<double, 3> groups{};
  for (const auto& then : run.cores) {
    std::vector<std::pair<double, double>> jobs;  // loss left, cores
    for (size_t i = 0; i < then.cores.size(); ++i)
      if (then.cores[i] > 0)
        jobs.emplace_back(run.jobs[i].loss_left(then.at_s, best[i]), then.cores[i]);
    std::sort(jobs.rbegin(), jobs.rend());
    double begin = 0;
    for (size_t group = 0; group < kGroups.size(); ++group) {
      const double end = begin + kGroups[group] * static_cast<double>(jobs.size());
      for (size_t i = 0; i < jobs.size(); ++i) {
        const auto at = static_cast<double>(i);
        groups[group] +=
            std::max(0.0, std::min(end, at + 1) - std::max(begin, at)) * jobs[i].second;
      }
      begin = end;
    }
  }
  const double all = std::accumulate(groups.begin(), groups.end(), 0.0);
  for (auto& group : groups) group /= std::max(all, 1e-9);
  return groups;
}

// The window is the same for all: as long as the longest took.
double window_s(const std::vector<AllocatorRun>& runs) {
  double longest = 0;
  for (const auto& run : runs) longest = std::max(longest, run.end_s - run.begin_s);
  return longest;
}

ordered_json policy_json(const AllocatorRun& run, const std::vector<double>& best,
                         double window_s) {
  std::vector<double> reached;
  for (size_t i = 0; i < run.jobs.size(); ++i)
    if (const auto at = run.jobs[i].reached_s(kConverged, best[i]))
      reached.push_back(*at - run.jobs[i].submitted_s);
  std::sort(reached.begin(), reached.end());
  ordered_json json{{"name", run.name},
                    {"jobs", run.jobs.size()},
                    {"failed", run.failures.size()},
                    {"mean_normalised_loss",
                     mean_loss_left(run.jobs, best, run.begin_s, run.begin_s + window_s)}};
  ordered_json times;
  const double mean = std::accumulate(reached.begin(), reached.end(), 0.0) /
                      std::max<double>(static_cast<double>(reached.size()), 1);
  const auto there = [&](double value) {
    return reached.empty() ? std::nullopt : std::optional(value);
  };
  set_or_unavailable(times, "mean", there(mean), "no job got there");
  set_or_unavailable(times, "p90",
                     there(reached.empty() ? 0 : reached[(reached.size() - 1) * 9 / 10]),
                     "no job got there");
  json["time_to_10_percent_s"] = times;
  json["cores_by_loss_group"] = cores_by_loss_group(run, best);
  json["moves"] = run.moves;
  json["wall_s"] = run.end_s - run.begin_s;
  json["failures"] = run.failures;
  return json;
}

ordered_json job_json(const AllocatorRun& run, const TrainingSeries& job) {
  ordered_json json{{"policy", run.name}, {"name", job.name}, {"iterations", job.points.size()}};
  const bool any = !job.points.empty();
  const auto known = [&](double value) { return any ? std::optional(value) : std::nullopt; };
  constexpr const char* kNone = "it has written nothing";
  set_or_unavailable(json, "first_loss", known(any ? job.points.front().loss : 0), kNone);
  set_or_unavailable(json, "last_loss", known(any ? job.points.back().loss : 0), kNone);
  set_or_unavailable(json, "cpu_s", known(any ? job.points.back().cpu_s : 0), kNone);
  const auto error = prediction_error(job.points);
  set_or_unavailable(json, "predicted_error_percent",
                     error ? std::optional(*error * 100) : std::nullopt, "the run was too short");
  set_or_unavailable(json, "response_s", known(any ? job.points.back().at_s - job.submitted_s : 0),
                     kNone);
  return json;
}

}  // namespace

ordered_json quality_report(const std::vector<AllocatorRun>& runs) {
  ordered_json report{
      {"schema", 1}, {"policies", ordered_json::array()}, {"jobs", ordered_json::array()}};
  if (runs.empty()) return report;
  const auto best = best_losses(runs);
  for (const auto& run : runs) {
    report["policies"].push_back(policy_json(run, best, window_s(runs)));
    for (const auto& job : run.jobs) report["jobs"].push_back(job_json(run, job));
  }
  return report;
}

void print_quality_report(std::ostream& out, const ordered_json& report) {
  out << '\n'
      << format_table(
             report,
             {.title = "Jobs",
              .rows = "/jobs",
              .columns = {{"POLICY", "/policy"},
                          {"JOB", "/name"},
                          {"ITERATIONS", "/iterations", Format::kNumber},
                          {"FIRST LOSS", "/first_loss", Format::kNumber},
                          {"LAST LOSS", "/last_loss", Format::kNumber},
                          {"CPU s", "/cpu_s", Format::kNumber},
                          {"RESPONSE s", "/response_s", Format::kNumber},
                          {"PREDICTION OFF %", "/predicted_error_percent", Format::kNumber}}})
      << '\n'
      << format_table(
             report,
             {.title = "Policies: loss left is the mean over jobs and time; 10 % left, in s after "
                       "the submission",
              .rows = "/policies",
              .columns = {{"POLICY", "/name"},
                          {"FAILED", "/failed", Format::kNumber},
                          {"LOSS LEFT", "/mean_normalised_loss", Format::kPercent},
                          {"10 % LEFT s", "/time_to_10_percent_s/mean", Format::kNumber},
                          {"p90", "/time_to_10_percent_s/p90", Format::kNumber},
                          {"CORES OF TOP 20 %", "/cores_by_loss_group/0", Format::kPercent},
                          {"NEXT 30 %", "/cores_by_loss_group/1", Format::kPercent},
                          {"REST", "/cores_by_loss_group/2", Format::kPercent},
                          {"MOVES", "/moves", Format::kNumber},
                          {"WALL s", "/wall_s", Format::kNumber}}});
  const auto& policies = report["policies"];
  if (policies.size() < 2) return;
  const double base = policies[0]["mean_normalised_loss"].get<double>();
  const double other = policies[1]["mean_normalised_loss"].get<double>();
  if (base > 0)
    out << fmt::format(
        "\n{} leaves {:.1f} % {} loss than {}, in the mean over time. One run; the "
        "machine's noise is in it.\n",
        policies[1]["name"].get<std::string>(), std::abs(1 - other / base) * 100,
        other < base ? "less" : "more", policies[0]["name"].get<std::string>());
}

std::string quality_picture(const std::vector<AllocatorRun>& runs) {
  sim::plot::Page page{.title = "Training jobs and their cores", .charts = {}, .columns = 2};
  const auto best = best_losses(runs);
  for (const auto& run : runs) {
    sim::plot::Chart losses{
        .title = run.name + ": loss left",
        .note = "1 at the first report, 0 at the best of all runs",
        .x = {.title = "seconds"},
        .y = {.title = "loss left", .unit = sim::plot::Unit::kShare, .min = 0, .max = 1},
        .series = {}};
    sim::plot::Chart cores{.title = run.name + ": who had the cores",
                           .note = "",
                           .x = {.title = "seconds"},
                           .y = {.title = "cores", .min = 0},
                           .series = {}};
    for (size_t i = 0; i < run.jobs.size(); ++i) {
      const auto& job = run.jobs[i];
      sim::plot::Series left{.name = job.name, .points = {}, .band = {}, .steps = true};
      for (const auto& point : job.points)
        left.points.push_back({point.at_s - run.begin_s, job.loss_left(point.at_s, best[i])});
      losses.series.push_back(std::move(left));
      sim::plot::Series had{.name = job.name, .points = {}, .band = {}, .steps = true};
      for (const auto& then : run.cores)
        had.points.push_back({then.at_s - run.begin_s, then.cores[i]});
      cores.series.push_back(std::move(had));
    }
    page.charts.emplace_back(std::move(losses));
    page.charts.emplace_back(std::move(cores));
  }
  return sim::plot::to_svg(page);
}

}  // namespace tierpilot::demo
