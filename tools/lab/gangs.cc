#include "tools/lab/gangs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "policies/gang/learned/learned_placers.h"
#include "policies/learning/saved_bytes.h"
#include "policies/sim/comparison.h"
#include "tools/cluster/program.h"
#include "tools/lab/progress_bar.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;

struct Measure {
  const char* name;
  double (*of)(const gang::GangResult&);
};
const Measure kMeasures[] = {
    {"makespan_h", [](const gang::GangResult& r) { return r.makespan_h; }},
    {"bound_h", [](const gang::GangResult& r) { return r.bound_h; }},
    {"completion_mean_h", [](const gang::GangResult& r) { return r.mean_completion_h; }},
    {"completion_p99_h", [](const gang::GangResult& r) { return r.p99_completion_h; }},
    {"restarts", [](const gang::GangResult& r) { return static_cast<double>(r.restarts); }},
    {"lost_unit_h", [](const gang::GangResult& r) { return r.lost_unit_h; }},
    {"utilisation", [](const gang::GangResult& r) { return r.utilisation; }},
    {"fairness", [](const gang::GangResult& r) { return r.fairness; }},
    {"unfinished", [](const gang::GangResult& r) { return static_cast<double>(r.unfinished); }}};

// By seed.
std::vector<double> values_of(const std::vector<gang::GangRun>& runs, size_t cell, size_t policy,
                              double (*of)(const gang::GangResult&)) {
  std::vector<double> values;
  for (const auto& run : runs)
    if (run.cell == cell && run.policy == policy) values.push_back(of(run.result));
  return values;
}

// The relative difference of two policies, paired by seed.
std::vector<double> differences(const std::vector<double>& values, const std::vector<double>& to) {
  std::vector<double> paired;
  for (size_t i = 0; i < values.size(); ++i)
    if (to[i] > 0) paired.push_back(values[i] / to[i] - 1);
  return paired;
}

// The rival with the least mean makespan: all but the one that knows the failures and those that
// learn.
size_t best_rival(const std::vector<gang::GangRun>& runs, const gang::GangSuite& suite,
                  size_t cell) {
  size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t policy = 0; policy < suite.policies.size(); ++policy) {
    const double mean = sim::estimate(values_of(runs, cell, policy, kMeasures[0].of)).mean;
    const auto& name = suite.policies[policy];
    if (name == "clairvoyant" || gang::learns(name) || mean >= least) continue;
    least = mean;
    best = policy;
  }
  return best;
}

ordered_json cell_json(const gang::GangCell& cell) {
  return {{"gpus", cell.units},
          {"per_node", cell.units_per_node},
          {"failures", gang::failure_setting_name(cell.setting)},
          {"failures_per_gpu_h", cell.mean_per_h},
          {"jobs", cell.from_trace ? "trace" : "made up"}};
}

ordered_json rows_json(const std::vector<gang::GangRun>& runs, const gang::GangSuite& suite) {
  ordered_json rows = ordered_json::array();
  for (size_t cell = 0; cell < suite.cells.size(); ++cell) {
    const size_t best = best_rival(runs, suite, cell);
    for (size_t policy = 0; policy < suite.policies.size(); ++policy) {
      auto row = cell_json(suite.cells[cell]);
      row["policy"] = suite.policies[policy];
      row["best_rival"] = suite.policies[best];
      for (const auto& measure : kMeasures) {
        const auto values = values_of(runs, cell, policy, measure.of);
        row[measure.name] = sim::estimate_json(values);
        const auto paired = differences(values, values_of(runs, cell, best, measure.of));
        if (std::string_view(measure.name) != "unfinished")
          row["differences"][measure.name] = sim::estimate_json(paired);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

// There is none where nothing was lost in any run.
bool has_mean(const ordered_json& estimate) {
  return estimate.is_object() && estimate["mean"].is_number();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// Of each policy over all rows: how far from the best rival of the row.
ordered_json overall_json(const ordered_json& rows, const gang::GangSuite& suite) {
  ordered_json overall = ordered_json::array();
  for (const auto& policy : suite.policies) {
    std::vector<double> makespan, lost, completion;
    for (const auto& row : rows) {
      if (row["policy"] != policy) continue;
      const auto& away = row["differences"];
      for (auto [name, values] : {std::pair{"makespan_h", &makespan},
                                  {"lost_unit_h", &lost},
                                  {"completion_mean_h", &completion}})
        if (has_mean(away[name])) values->push_back(away[name]["mean"].get<double>());
    }
    overall.push_back({{"policy", policy},
                       {"makespan_median", median(makespan)},
                       {"makespan_worst", *std::max_element(makespan.begin(), makespan.end())},
                       {"completion_median", median(completion)},
                       {"lost_median", median(lost)}});
  }
  return overall;
}

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
  for (auto& row : value["overall"])
    for (auto& [key, cell] : row.items())
      if (cell.is_number()) cell = fmt::format("{:+.1f}", 100 * cell.get<double>());
  *output.out << format_table(value,
                              {.title = "Over all rows, against the best rival of the row, %",
                               .rows = "/overall",
                               .columns = {{"POLICY", "/policy"},
                                           {"MAKESPAN", "/makespan_median"},
                                           {"WORST", "/makespan_worst"},
                                           {"MEAN COMPLETION", "/completion_median"},
                                           {"LOST GPU-HOURS", "/lost_median"}}})
              << '\n'
              << format_table(
                     value, {.title = "Every row, worst first; differences from the best rival of "
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
      gang::run_gangs(suite, gang::placer_maker(suite, *net, {}, options.workloads),
                      options.threads.value_or(std::max(1U, std::thread::hardware_concurrency())),
                      [&](double share) { bar.show(share); });
  bar.clear();
  if (!runs) return print_error(output, runs.error());
  ordered_json value{{"suite", "gangs"}, {"seeds", suite.seeds}, {"policies", suite.policies}};
  value["rows"] = rows_json(*runs, suite);
  value["overall"] = overall_json(value["rows"], suite);
  if (output.json) return print(output, value, {});
  print_tables(output, std::move(value));
  return kExitOk;
}

}  // namespace tierpilot::lab
