#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/statistics.h"
#include "policies/sim/comparison.h"
#include "policies/sim/evaluation/evaluate.h"

namespace tierpilot::sim {
namespace {

using nlohmann::ordered_json;

using BySeed = std::map<uint64_t, double>;

std::optional<double> mean(const BySeed& values) {
  double sum = 0;
  for (const auto& [seed, value] : values) sum += value;
  return values.empty() ? std::nullopt : std::optional(sum / static_cast<double>(values.size()));
}

// Of the seeds in which any task succeeded.
BySeed responses_s(const std::vector<const EvaluatedRun*>& runs, const std::string& policy,
                   double Spread::*figure) {
  BySeed values;
  for (const EvaluatedRun* run : runs)
    if (run->policy == policy && run->result.succeeded > 0)
      values[run->seed] = run->result.response_s.*figure;
  return values;
}

// The policy with the least mean response that is not judged itself; "" when there is none.
std::string best_other(const std::vector<const EvaluatedRun*>& runs,
                       const std::vector<std::string>& judged) {
  std::string best;
  double best_s = 0;
  for (const EvaluatedRun* run : runs) {
    if (std::find(judged.begin(), judged.end(), run->policy) != judged.end()) continue;
    const auto mean_s = mean(responses_s(runs, run->policy, &Spread::mean));
    if (mean_s && (best.empty() || *mean_s < best_s)) best = run->policy, best_s = *mean_s;
  }
  return best;
}

ordered_json relative(const BySeed& values, const BySeed& bases) {
  std::vector<double> differences;
  for (const auto& [seed, value] : values)
    if (const auto base = bases.find(seed); base != bases.end() && base->second > 0)
      differences.push_back(value / base->second - 1);
  return estimate_json(differences);
}

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json cell_json(const EvaluationCell& cell, const std::vector<const EvaluatedRun*>& runs,
                       const std::string& policy, const std::string& best) {
  const auto own = responses_s(runs, policy, &Spread::mean);
  std::vector<double> shares;
  for (const EvaluatedRun* run : runs)
    if (run->policy == policy && run->bound_s && run->result.response_s.mean > 0)
      shares.push_back(*run->bound_s / run->result.response_s.mean);
  ordered_json row{{"workload", cell.workload.name},
                   {"nodes", cell.cluster.node_count()},
                   {"policy", policy},
                   {"best_heuristic", best},
                   {"best_response_mean_s", nullptr},
                   {"response_mean_s", or_null(mean(own))},
                   {"difference", nullptr},
                   {"difference_p99", nullptr},
                   {"bound_share", estimate_json(shares)}};
  if (own.empty()) row["response_mean_s_unavailable"] = kNoTask;
  if (best.empty()) {
    for (const char* key : {"best_response_mean_s", "difference", "difference_p99"})
      row[std::string(key) + "_unavailable"] = "no heuristic was evaluated";
    return row;
  }
  const auto other = responses_s(runs, best, &Spread::mean);
  row["best_response_mean_s"] = or_null(mean(other));
  row["difference"] = relative(own, other);
  row["difference_p99"] =
      relative(responses_s(runs, policy, &Spread::p99), responses_s(runs, best, &Spread::p99));
  return row;
}

// Over the cells; differences are relative to each cell's best heuristic.
ordered_json overall_json(const ordered_json& cells, const std::string& policy) {
  std::vector<double> differences, shares;
  for (const auto& cell : cells) {
    if (cell["policy"] != policy) continue;
    if (cell["difference"].is_object() && cell["difference"]["mean"].is_number())
      differences.push_back(cell["difference"]["mean"]);
    if (cell["bound_share"]["mean"].is_number()) shares.push_back(cell["bound_share"]["mean"]);
  }
  ordered_json row{{"policy", policy}, {"cells", shares.size()}};
  const auto put = [&](const char* key, const std::vector<double>& values, auto figure,
                       const char* why) {
    row[key] = nullptr;
    if (values.empty())
      row[std::string(key) + "_unavailable"] = why;
    else
      row[key] = figure(values);
  };
  constexpr const char* kNoHeuristic = "no heuristic was evaluated";
  put("difference_median", differences, median, kNoHeuristic);
  put(
      "difference_worst", differences,
      [](const auto& values) { return *std::max_element(values.begin(), values.end()); },
      kNoHeuristic);
  put("bound_share_median", shares, median, "nowhere did all tasks succeed");
  return row;
}

}  // namespace

ordered_json evaluation_json(const Suite& suite, const std::vector<EvaluatedRun>& runs,
                             const std::vector<std::string>& judged) {
  ordered_json value{{"suite", suite.name},
                     {"seeds", suite.seeds},
                     {"first_seed", kFirstEvaluationSeed},
                     {"runs", ordered_json::array()},
                     {"cells", ordered_json::array()},
                     {"overall", ordered_json::array()}};
  for (const EvaluatedRun& run : runs) {
    const EvaluationCell& cell = suite.cells[run.cell];
    ordered_json row{{"workload", cell.workload.name}, {"nodes", cell.cluster.node_count()}};
    row.update(run_json({run.policy, run.seed, run.result}));
    row["response_bound_s"] = or_null(run.bound_s);
    if (!run.bound_s) row["response_bound_s_unavailable"] = "not all tasks succeeded";
    if (run.guard)
      row["guard"] = {{"control", run.guard->control},
                      {"alone", run.guard->alone},
                      {"faults", run.guard->faults},
                      {"deposed", run.guard->deposed}};
    value["runs"].push_back(std::move(row));
  }
  for (size_t i = 0; i < suite.cells.size(); ++i) {
    std::vector<const EvaluatedRun*> of_cell;
    for (const EvaluatedRun& run : runs)
      if (run.cell == i) of_cell.push_back(&run);
    const std::string best = best_other(of_cell, judged);
    for (const std::string& policy : judged)
      value["cells"].push_back(cell_json(suite.cells[i], of_cell, policy, best));
  }
  for (const std::string& policy : judged)
    value["overall"].push_back(overall_json(value["cells"], policy));
  return value;
}

}  // namespace tierpilot::sim
