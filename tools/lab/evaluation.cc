#include "tools/lab/evaluation.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "policies/placement/registry.h"
#include "tools/lab/progress_bar.h"
#include "tools/lab/scene.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;

std::string percent(const ordered_json& share, bool difference) {
  const char* format = difference ? "{:+.1f}" : "{:.1f}";
  if (!share.is_number()) return "-";
  return fmt::format(fmt::runtime(format), share.get<double>() * 100);
}

std::string percent_with_interval(const ordered_json& estimate, bool difference) {
  if (!estimate.is_object()) return "-";
  auto text = percent(estimate["mean"], difference);
  if (estimate["ci95"].is_number()) text += " ± " + percent(estimate["ci95"], false);
  return text;
}

// A row for each cell, with the mean over seeds of one measure of every policy.
ordered_json measure_by_policy(const ordered_json& value, const char* measure) {
  ordered_json rows = ordered_json::array();
  std::map<std::string, double> counted;  // runs of the row so far, by policy
  for (const auto& run : value["runs"]) {
    if (rows.empty() || rows.back()["workload"] != run["workload"] ||
        rows.back()["nodes"] != run["nodes"]) {
      rows.push_back({{"workload", run["workload"]}, {"nodes", run["nodes"]}});
      counted.clear();
    }
    auto& row = rows.back();
    const auto policy = run["policy"].get<std::string>();
    if (!run[measure].is_number()) continue;
    const double before = row.value(policy, 0.0);
    row[policy] = before + (run[measure].get<double>() - before) / ++counted[policy];
  }
  return rows;
}

std::vector<Column> policy_columns(const ordered_json& value) {
  std::vector<Column> columns{{"WORKLOAD", "/workload"}, {"NODES", "/nodes", Format::kNumber}};
  for (const auto& policy : value["policies"]) {
    const auto name = policy.get<std::string>();
    columns.push_back({name, "/" + name, Format::kNumber});
  }
  return columns;
}

const std::vector<Column> kCellColumns{{"WORKLOAD", "/workload"},
                                       {"NODES", "/nodes", Format::kNumber},
                                       {"POLICY", "/policy"},
                                       {"RESPONSE s", "/response_mean_s", Format::kNumber},
                                       {"BEST HEURISTIC", "/best_heuristic"},
                                       {"ITS RESPONSE s", "/best_response_mean_s", Format::kNumber},
                                       {"DIFFERENCE %", "/difference"},
                                       {"OF P99 %", "/difference_p99"},
                                       {"BOUND / RESPONSE %", "/bound_share"}};
const std::vector<Column> kOverallColumns{{"POLICY", "/policy"},
                                          {"CELLS", "/cells", Format::kNumber},
                                          {"MEDIAN DIFFERENCE %", "/difference_median"},
                                          {"WORST %", "/difference_worst"},
                                          {"MEDIAN BOUND / RESPONSE %", "/bound_share_median"}};

void shown_as_percent(ordered_json& value) {
  for (auto& cell : value["cells"]) {
    for (const char* key : {"difference", "difference_p99"})
      cell[key] = percent_with_interval(cell[key], true);
    cell["bound_share"] = percent_with_interval(cell["bound_share"], false);
  }
  for (auto& row : value["overall"]) {
    for (const char* key : {"difference_median", "difference_worst"})
      row[key] = percent(row[key], true);
    row["bound_share_median"] = percent(row["bound_share_median"], false);
  }
}

std::vector<std::string> warnings_of(const ordered_json& value) {
  std::vector<std::string> warnings;
  for (const auto& run : value["runs"])
    for (const char* what : {"failed", "rejected", "unfinished"})
      if (const auto count = run[what].get<uint64_t>(); count > 0)
        warnings.push_back(fmt::format("{} on {} with seed {}: {}",
                                       run["policy"].get<std::string>(),
                                       run["workload"].get<std::string>(),
                                       run["seed"].get<uint64_t>(), left_out(what, count)));
  return warnings;
}

std::map<std::string, GuardSettings> default_guards() {
  std::map<std::string, GuardSettings> guards;
  for (const PlacementModule& module : placement_modules())
    if (module.learning) guards[module.info.name].judged = module.learning->traits().judged;
  return guards;
}

}  // namespace

Result<Evaluated> run_suite(sim::Suite suite, const Contenders& contenders,
                            const sim::PlayerMaker& make, bool guarded,
                            std::optional<uint32_t> threads) {
  ProgressBar bar(stderr, isatty(STDERR_FILENO) == 1);
  auto runs = sim::evaluate(
      suite, {.policies = contenders.policies,
              .plain = contenders.plain,
              .guards = guarded ? default_guards() : std::map<std::string, GuardSettings>(),
              .threads = threads.value_or(std::max(1U, std::thread::hardware_concurrency())),
              .make_player = make,
              .progress = [&](double share) { bar.show(share); }});
  bar.clear();
  if (!runs) return tl::unexpected(runs.error());
  auto shown = contenders.policies;
  for (const std::string& name : contenders.plain) shown.push_back(sim::plain_name(name));
  return Evaluated{std::move(suite), std::move(shown), std::move(*runs)};
}

ordered_json evaluated_json(const Evaluated& evaluated) {
  std::vector<std::string> judged;
  for (const PlacementModule& module : placement_modules())
    if (module.learning && std::find(evaluated.policies.begin(), evaluated.policies.end(),
                                     module.info.name) != evaluated.policies.end())
      judged.push_back(module.info.name);
  auto value = sim::evaluation_json(evaluated.suite, evaluated.runs, judged);
  value["policies"] = evaluated.policies;
  return value;
}

int show_evaluation(const Output& output, ordered_json value) {
  const auto warnings = warnings_of(value);
  if (output.json) return print(output, value, {}, warnings);
  value["responses"] = measure_by_policy(value, "response_mean_s");
  value["tails"] = measure_by_policy(value, "response_p99_s");
  value["utilisations"] = measure_by_policy(value, "utilisation");
  value["evictions"] = measure_by_policy(value, "evicted_bytes");
  for (auto& row : value["evictions"])
    for (auto& [key, cell] : row.items())
      if (cell.is_number_float()) cell = cell.get<double>() / 1e9;
  value["evenness"] = measure_by_policy(value, "fairness");
  value["waits"] = measure_by_policy(value, "wait_mean_s");
  value["long_waits"] = measure_by_policy(value, "wait_p99_s");
  shown_as_percent(value);
  const auto columns = policy_columns(value);
  std::vector<Table> tables;
  for (const auto& [title, rows] :
       {std::pair{"Mean response, s", "/responses"}, std::pair{"p99 response, s", "/tails"},
        std::pair{"Mean wait, s", "/waits"}, std::pair{"p99 wait, s", "/long_waits"},
        std::pair{"Utilisation", "/utilisations"}, std::pair{"Evicted, GB", "/evictions"},
        std::pair{"Fairness between users", "/evenness"}})
    tables.push_back({.title = title, .rows = rows, .columns = columns});
  if (!value["cells"].empty()) {
    tables.push_back({.title = "Against the best heuristic of the row, paired by seed; and the "
                               "bound that no policy can beat",
                      .rows = "/cells",
                      .columns = kCellColumns});
    tables.push_back({.title = "Over all rows", .rows = "/overall", .columns = kOverallColumns});
  }
  const int code = print(output, value, tables, warnings);
  *output.out << trace_note(value);
  return code;
}

}  // namespace tierpilot::lab
