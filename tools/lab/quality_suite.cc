#include "tools/lab/quality_suite.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "policies/quality/allocator.h"
#include "policies/sim/quality/quality_suite.h"
#include "policies/sim/trace/readers.h"
#include "tools/lab/progress_bar.h"

namespace tierpilot::lab {
namespace {

std::vector<Table> suite_tables() {
  return {{.title = "Normalised loss over time: of all jobs that have arrived, the worst first",
           .rows = "/cells",
           .columns = {{"CELL", "/cell"},
                       {"POLICY", "/policy"},
                       {"MEAN LOSS", "/mean_normalised_loss", Format::kNumber},
                       {"/ FAIR", "/loss_beside_fair", Format::kNumber},
                       {"AT THE END", "/loss_at_window_end", Format::kNumber},
                       {"OF CLAIRVOYANT GAIN", "/clairvoyant_gain_share", Format::kPercent},
                       {"TO 25 % s", "/time_to_25_percent_s/median", Format::kNumber},
                       {"TO 10 % s", "/time_to_10_percent_s/median", Format::kNumber},
                       {"TO 5 % s", "/time_to_5_percent_s/median", Format::kNumber},
                       {"COMPLETION s", "/completion_s/mean", Format::kNumber},
                       {"P90", "/completion_s/p90", Format::kNumber}}},
          {.title = "Who had the cores, and what it costs",
           .rows = "/cells",
           .columns = {{"CELL", "/cell"},
                       {"POLICY", "/policy"},
                       {"HIGHEST 20 %", "/cores_by_loss_group/0", Format::kPercent},
                       {"NEXT 30 %", "/cores_by_loss_group/1", Format::kPercent},
                       {"LOWEST 50 %", "/cores_by_loss_group/2", Format::kPercent},
                       {"SLOWEST JOB / FAIR", "/slowest_job_beside_fair", Format::kNumber},
                       {"JOBS 20 % LATER", "/jobs_20_percent_later", Format::kPercent},
                       {"STARVED s", "/longest_starved_s", Format::kNumber},
                       {"MOVES/min", "/moves_per_minute", Format::kNumber},
                       {"UTILISATION", "/utilisation", Format::kPercent},
                       {"REBALANCE s", "/rebalance_s", Format::kNumber}}}};
}

Result<std::vector<sim::TrainingCell>> cells_named(const std::vector<std::string>& names) {
  if (names.empty()) return sim::quality_cells();
  std::vector<sim::TrainingCell> cells;
  for (const auto& name : names) {
    const auto& all = sim::quality_cells();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& cell) { return cell.name == name; });
    if (found == all.end()) {
      std::string known;
      for (const auto& cell : all) known += (known.empty() ? "" : ", ") + cell.name;
      return fail(ErrorCode::kNotFound,
                  fmt::format("--cells: '{}' is not known; there are {}", name, known));
    }
    cells.push_back(*found);
  }
  return cells;
}

Result<std::vector<double>> arrivals_s(const std::string& file) {
  const auto trace = sim::read_philly(file, {.datasets = std::nullopt});
  if (!trace) return tl::unexpected(trace.error());
  std::vector<double> times_s;
  for (const auto& task : trace->workload.tasks)
    times_s.push_back(static_cast<double>(task.arrival_ns) * 1e-9);
  return times_s;
}

Status check_policies(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    if (name == "clairvoyant") continue;
    if (const auto made = quality::make_allocator(name); !made)
      return fail(made.error().code, "--policies: " + made.error().message);
  }
  return {};
}

}  // namespace

int run_quality_suite(const Output& output, const QualitySuiteOptions& options) {
  auto cells = cells_named(options.cells);
  if (!cells) return print_error(output, cells.error());
  return run_training_cells(output, std::move(*cells), options);
}

int run_training_cells(const Output& output, std::vector<sim::TrainingCell> cells,
                       const QualitySuiteOptions& options) {
  sim::QualityOptions suite{.seeds = options.seeds, .first_seed = options.first_seed};
  suite.cells = std::move(cells);
  suite.threads = options.threads.value_or(std::max(1U, std::thread::hardware_concurrency()));
  if (const auto status = check_policies(options.policies); !status)
    return print_error(output, status.error());
  suite.allocators = options.policies;
  if (suite.allocators.empty()) suite.allocators = quality::allocators().names();
  if (!options.trace.empty()) {
    auto arrivals = arrivals_s(options.trace);
    if (!arrivals) return print_error(output, arrivals.error());
    suite.trace_s = std::move(*arrivals);
  }
  std::vector<std::string> warnings;
  if (!options.curves.empty()) {
    auto file = sim::read_curve_files(options.curves);
    if (!file) return print_error(output, file.error());
    if (file->skipped > 0)
      warnings.push_back(fmt::format("{} of {} rows of curves were left out; the first: {}",
                                     file->skipped, file->rows, file->first_skipped));
    suite.curves = std::move(file->curves);
  }
  ProgressBar bar(stderr, isatty(STDERR_FILENO));
  suite.progress = [&bar](double share) { bar.show(share); };
  auto value = sim::evaluate_quality(suite);
  bar.clear();
  if (!value) return print_error(output, value.error());
  (*value)["curves"] = options.curves.empty() ? "generated" : options.curves;
  (*value)["arrivals"] = options.trace.empty() ? "Poisson" : options.trace;
  return print(output, *value, suite_tables(), warnings);
}

}  // namespace tierpilot::lab
