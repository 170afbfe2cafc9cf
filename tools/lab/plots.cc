#include "tools/lab/plots.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "policies/sim/plot/chart.h"

namespace tierpilot::lab {
namespace {

using sim::plot::Chart;
using sim::plot::Unit;

Chart response_chart(std::string title, uint64_t seed) {
  return {.title = std::move(title),
          .note = fmt::format("share of the tasks, seed {}", seed),
          .x = {.title = "response", .unit = Unit::kNanoseconds, .log = true},
          .y = {.title = "tasks that took at most so long", .unit = Unit::kShare}};
}

void add_distribution(Chart& chart, const std::string& policy,
                      const std::vector<float>& responses_s) {
  std::vector<double> ns;
  for (const float s : responses_s) ns.push_back(static_cast<double>(s) * 1e9);
  chart.series.push_back(sim::plot::distribution(policy, std::move(ns)));
}

// Names in the order of the runs.
std::vector<std::string> policies_of(const std::vector<sim::PolicyRun>& runs) {
  std::vector<std::string> names;
  for (const auto& run : runs)
    if (std::find(names.begin(), names.end(), run.policy) == names.end())
      names.push_back(run.policy);
  return names;
}

// At most kStretches points, each the mean of a stretch of time: single samples would be a
// hatching.
std::vector<sim::plot::Point> averaged(const std::vector<sim::plot::Point>& samples) {
  constexpr size_t kStretches = 120;
  const size_t each = std::max<size_t>((samples.size() + kStretches - 1) / kStretches, 1);
  std::vector<sim::plot::Point> means;
  for (size_t begin = 0; begin < samples.size(); begin += each) {
    const size_t end = std::min(begin + each, samples.size());
    sim::plot::Point mean{samples[begin].x, 0};
    for (size_t i = begin; i < end; ++i) mean.y += samples[i].y / static_cast<double>(end - begin);
    means.push_back(mean);
  }
  return means;
}

// `value` of the samples over the time since the first submit.
Chart course(const std::vector<sim::PolicyRun>& runs, std::string title, sim::plot::Axis y,
             auto value) {
  Chart chart{.title = std::move(title),
              .note = "mean over seeds; the shade reaches from the least to the most of them",
              .x = {.title = "time", .unit = Unit::kNanoseconds},
              .y = std::move(y)};
  for (const std::string& policy : policies_of(runs)) {
    std::vector<std::vector<sim::plot::Point>> of_seeds;
    for (const auto& run : runs) {
      if (run.policy != policy) continue;
      std::vector<sim::plot::Point> samples;
      for (const sim::Sample& sample : run.result.samples)
        samples.push_back({sample.at_s * 1e9, value(sample)});
      of_seeds.push_back(averaged(samples));
    }
    chart.series.push_back(sim::plot::mean_and_range(policy, of_seeds, true));
  }
  return chart;
}

}  // namespace

Status open_plots(const std::filesystem::path& folder) {
  if (folder.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  int number = error.value();
  if (number == 0 && access(folder.c_str(), W_OK) != 0) number = errno;
  if (number == 0) return {};
  return fail_errno(number,
                    fmt::format("--plots: folder '{}' cannot be written to", folder.string()));
}

Status write_plot(const std::filesystem::path& file, const std::string& svg) {
  std::ofstream out(file);
  out << svg;
  if (!out.flush()) return fail_errno(errno, fmt::format("'{}' cannot be written", file.string()));
  return {};
}

Status write_response_plots(const Evaluated& evaluated, const std::string& folder) {
  for (size_t i = 0; i < evaluated.suite.cells.size(); ++i) {
    const auto& cell = evaluated.suite.cells[i];
    Chart chart =
        response_chart(fmt::format("Response times, {}, {}", cell.workload.name, cell.cluster.name),
                       sim::kFirstEvaluationSeed);
    for (const auto& run : evaluated.runs)
      if (run.cell == i && run.seed == sim::kFirstEvaluationSeed)
        add_distribution(chart, run.policy, run.result.responses_s);
    auto workload = std::filesystem::path(cell.workload.name).stem().string();
    std::replace(workload.begin(), workload.end(), ' ', '-');
    const auto file = std::filesystem::path(folder) /
                      fmt::format("responses-{}-{}.svg", workload, cell.cluster.node_count());
    if (auto status = write_plot(file, sim::plot::to_svg(chart)); !status) return status;
  }
  return {};
}

Status write_run_plots(const sim::ClusterSpec& cluster, const std::vector<sim::PolicyRun>& runs,
                       const std::string& folder) {
  const auto units = static_cast<double>(cluster.unit_count());
  Chart of_first = response_chart("Response times", 1);
  for (const auto& run : runs)
    if (run.seed == 1) add_distribution(of_first, run.policy, run.result.responses_s);
  const Chart responses = std::move(of_first);
  const Chart queue =
      course(runs, "Queue length", {.title = "tasks that no node has yet"},
             [](const sim::Sample& sample) { return static_cast<double>(sample.queued); });
  const Chart busy =
      course(runs, "Utilisation", {.title = "busy compute units", .unit = Unit::kShare, .max = 1},
             [&](const sim::Sample& sample) { return sample.busy_units / units; });
  const std::filesystem::path place = folder;
  for (const auto& [name, chart] :
       {std::pair{"queue-length.svg", &queue}, std::pair{"utilisation.svg", &busy},
        std::pair{"responses.svg", &responses}})
    if (auto status = write_plot(place / name, sim::plot::to_svg(*chart)); !status) return status;
  return {};
}

}  // namespace tierpilot::lab
