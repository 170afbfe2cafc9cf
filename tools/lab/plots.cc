#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "policies/sim/plot/chart.h"
#include "tools/lab/evaluation.h"

namespace tierpilot::lab {

Status write_plot(const std::filesystem::path& file, const std::string& svg) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  std::ofstream out(file);
  out << svg;
  if (!out.flush()) return fail_errno(errno, fmt::format("'{}' cannot be written", file.string()));
  return {};
}

Status write_response_plots(const Evaluated& evaluated, const std::string& folder) {
  for (size_t i = 0; i < evaluated.suite.cells.size(); ++i) {
    const auto& cell = evaluated.suite.cells[i];
    sim::plot::Chart chart{
        .title = fmt::format("Response times, {}, {}", cell.workload.name, cell.cluster.name),
        .note = fmt::format("share of the tasks, seed {}", sim::kFirstEvaluationSeed),
        .x = {.title = "response", .unit = sim::plot::Unit::kNanoseconds, .log = true},
        .y = {.title = "tasks that took at most so long", .unit = sim::plot::Unit::kShare}};
    for (const auto& run : evaluated.runs) {
      if (run.cell != i || run.seed != sim::kFirstEvaluationSeed) continue;
      std::vector<double> ns;
      for (const float s : run.result.responses_s) ns.push_back(static_cast<double>(s) * 1e9);
      chart.series.push_back(sim::plot::distribution(run.policy, std::move(ns)));
    }
    const auto file =
        std::filesystem::path(folder) /
        fmt::format("responses-{}-{}.svg", cell.workload.name, cell.cluster.node_count());
    if (auto status = write_plot(file, sim::plot::to_svg(chart)); !status) return status;
  }
  return {};
}

}  // namespace tierpilot::lab
