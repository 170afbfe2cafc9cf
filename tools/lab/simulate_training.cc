#include "tools/lab/simulate_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policies/sim/model/cluster_spec.h"
#include "tools/lab/quality_suite.h"
#include "tools/output/arguments.h"

namespace tierpilot::lab {
namespace {

// A number or two, with a colon between.
Status read_work(const std::string& text, sim::TrainingCell& cell) {
  const size_t colon = text.find(':');
  const auto number = [](const std::string& digits, double& into) {
    size_t used = 0;
    try {
      into = std::stod(digits, &used);
    } catch (const std::exception&) {
      return false;
    }
    return used == digits.size() && std::isfinite(into) && into > 0;
  };
  if (number(text.substr(0, colon), cell.least_work_s) &&
      number(colon == text.npos ? text : text.substr(colon + 1), cell.most_work_s) &&
      cell.least_work_s <= cell.most_work_s)
    return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("--work-s: '{}' is no work: write LEAST:MOST, CPU seconds", text));
}

// A unit is a core here; a job stays on its node, as an elastic task of one process does.
Status take_cores(const std::string& file, sim::TrainingCell& cell) {
  if (file.empty()) return {};
  const auto cluster = sim::read_cluster_spec(file);
  if (!cluster) return tl::unexpected(cluster.error());
  cell.name = cluster->name.empty() ? file : cluster->name;
  cell.cores = static_cast<double>(cluster->unit_count());
  cell.max_cores = 0;
  for (const auto& group : cluster->groups)
    cell.max_cores = std::max(cell.max_cores, static_cast<double>(group.units));
  return {};
}

}  // namespace

CLI::Option* add_training_scene(CLI::App& command, TrainingScene& scene) {
  auto* curves = command
                     .add_option("--curves", scene.curves,
                                 "in place of a workload: training jobs that follow these recorded "
                                 "loss curves, as 'quality predict' takes them; policies are those "
                                 "of 'policy evaluate --suite quality'")
                     ->type_name("FILE");
  command.add_option("--jobs", scene.jobs, "how many train")
      ->check(CLI::Range(1U, 100'000U))
      ->needs(curves)
      ->capture_default_str();
  command.add_option("--gap-s", scene.gap_s, "seconds between two of them, in the mean")
      ->check(number_between(0.001, 1e6))
      ->needs(curves)
      ->capture_default_str();
  command.add_option("--period-s", scene.period_s, "seconds between two decisions")
      ->check(number_between(0.1, 1e5))
      ->needs(curves)
      ->capture_default_str();
  command.add_option("--work-s", scene.work_s, "CPU seconds of a job, drawn between these")
      ->type_name("LEAST:MOST")
      ->needs(curves)
      ->capture_default_str();
  return curves;
}

int simulate_training(const Output& output, const TrainingScene& scene) {
  sim::TrainingCell cell{.name = "published cores",
                         .jobs = scene.jobs,
                         .mean_gap_s = scene.gap_s,
                         .period_s = scene.period_s,
                         .window_s = scene.gap_s * scene.jobs};
  auto right = read_work(scene.work_s, cell);
  if (right) right = take_cores(scene.cluster, cell);
  if (!right) return print_error(output, right.error());
  return run_training_cells(output, {cell},
                            {.curves = scene.curves,
                             .trace = {},
                             .cells = {},
                             .policies = scene.allocators,
                             .seeds = scene.seeds});
}

}  // namespace tierpilot::lab
