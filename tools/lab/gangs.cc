#include "tools/lab/gangs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "policies/learning/saved_bytes.h"
#include "policies/sim/gang/learned_placers.h"
#include "tools/cluster/program.h"
#include "tools/lab/gang_rows.h"
#include "tools/lab/progress_bar.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;

std::string percent(const ordered_json& estimate) {
  if (!has_mean(estimate)) return "-";
  auto text = fmt::format("{:+.1f}", 100 * estimate["mean"].get<double>());
  if (estimate["ci95"].is_number())
    text += fmt::format(" ± {:.1f}", 100 * estimate["ci95"].get<double>());
  return text;
}

void print_tables(const Output& output, ordered_json value) {
  auto& rows = value["rows"];
  for (auto& row : rows)
    for (const char* name : {"makespan_h", "lost_unit_h"})
      row[std::string("difference_") + name] = percent(row["differences"][name]);
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a["differences"]["makespan_h"]["mean"].template get<double>() >
           b["differences"]["makespan_h"]["mean"].template get<double>();
  });
  for (const char* table : {"overall", "goals"})
    for (auto& row : value[table])
      for (auto& [key, cell] : row.items())
        if (cell.is_number_float())
          cell = fmt::format("{:+.1f}", 100 * cell.get<double>());
        else if (cell.is_null())
          cell = "-";
  *output.out
      << format_table(value, {.title = "Over all rows, against the best rival of the row, %",
                              .rows = "/overall",
                              .columns = {{"POLICY", "/policy"},
                                          {"MAKESPAN", "/makespan_median"},
                                          {"WORST", "/makespan_worst"},
                                          {"MEAN COMPLETION", "/completion_median"},
                                          {"LOST GPU-HOURS", "/lost_median"}}})
      << '\n'
      << format_table(value, {.title = "Means of seeds, of policies that know no failures to "
                                       "come, in the median row where rates differ, %",
                              .rows = "/goals",
                              .columns = {{"POLICY", "/policy"},
                                          {"FAILURES", "/level"},
                                          {"MAKESPAN TO CAPACITY-AWARE", "/makespan_to_capacity"},
                                          {"LOST", "/lost_to_capacity"},
                                          {"MAKESPAN TO SPREAD", "/makespan_to_spread"},
                                          {"LOST", "/lost_to_spread"},
                                          {"ROWS > 1 % OVER BEST", "/rows_over_best"},
                                          {"OF", "/rows"},
                                          {"WORST", "/worst_to_best"},
                                          {"TO CLAIRVOYANT, 64 GPUS", "/to_clairvoyant"}}})
      << '\n'
      << format_table(value, {.title = "Every row, worst first; differences from the best rival of "
                                       "the row, paired by seed, %",
                              .rows = "/rows",
                              .columns = {{"GPUS", "/gpus", Format::kNumber},
                                          {"NODE", "/per_node", Format::kNumber},
                                          {"FAILURES", "/failures"},
                                          {"PER GPU-HOUR", "/failures_per_gpu_h", Format::kNumber},
                                          {"JOBS", "/jobs"},
                                          {"POLICY", "/policy"},
                                          {"BEST RIVAL", "/best_rival"},
                                          {"MAKESPAN h", "/makespan_h/mean", Format::kNumber},
                                          {"OFF %", "/difference_makespan_h"},
                                          {"BOUND h", "/bound_h/mean", Format::kNumber},
                                          {"MEAN h", "/completion_mean_h/mean", Format::kNumber},
                                          {"P99 h", "/completion_p99_h/mean", Format::kNumber},
                                          {"RESTARTS", "/restarts/mean", Format::kNumber},
                                          {"LOST GPU-h", "/lost_unit_h/mean", Format::kNumber},
                                          {"OFF %", "/difference_lost_unit_h"},
                                          {"UTILISED", "/utilisation/mean", Format::kPercent},
                                          {"FAIRNESS", "/fairness/mean", Format::kNumber}}});
}

Result<std::shared_ptr<const gang::AcNet>> load_ac(const std::string& weights) {
  std::filesystem::path file = weights;
  if (weights.empty()) {
    auto shipped = find_data_file("ac.weights");
    if (!shipped) return tl::unexpected(shipped.error());
    file = *shipped;
  }
  const auto text = load_bytes(file);
  if (!text) return tl::unexpected(text.error());
  auto net = gang::read_ac_weights(*text, file.string());
  if (!net) return tl::unexpected(net.error());
  return std::make_shared<const gang::AcNet>(std::move(*net));
}

}  // namespace

int evaluate_gangs(const Output& output, const GangOptions& options) {
  auto suite = gang::gang_suite(options.max_units);
  suite.costs.repair_h = options.repair_h;
  suite.costs.restart_h = options.restart_h;
  if (options.policies.empty())
    suite.policies.push_back(gang::kAc);
  else
    suite.policies = options.policies;
  const auto net = load_ac(options.weights);
  if (!net) return print_error(output, net.error());
  suite.seeds = options.seeds.value_or(suite.seeds);
  if (!options.trace.empty()) {
    auto jobs = gang::trace_jobs(options.trace, gang::TraceHalf::kSecond);
    if (!jobs) return print_error(output, jobs.error());
    suite.trace = std::move(*jobs);
    for (auto& cell : suite.cells) cell.from_trace = true;
  }
  ProgressBar bar(stderr, isatty(STDERR_FILENO) == 1);
  const auto runs =
      gang::run_gangs(suite, gang::placer_maker(suite, *net, options.published, options.workloads),
                      options.threads.value_or(std::max(1U, std::thread::hardware_concurrency())),
                      [&](double share) { bar.show(share); });
  bar.clear();
  if (!runs) return print_error(output, runs.error());
  ordered_json value{{"suite", "gangs"}, {"seeds", suite.seeds}, {"policies", suite.policies}};
  value["rows"] = gang_rows_json(*runs, suite);
  value["overall"] = gang_overall_json(value["rows"], suite);
  value["goals"] = gang_goals_json(*runs, suite);
  if (output.json) return print(output, value, {});
  print_tables(output, std::move(value));
  return kExitOk;
}

}  // namespace tierpilot::lab
