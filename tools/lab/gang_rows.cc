#include "tools/lab/gang_rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/statistics.h"
#include "policies/sim/comparison.h"
#include "policies/sim/gang/learned_placers.h"

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
    {"fetch_unit_h", [](const gang::GangResult& r) { return r.fetch_unit_h; }},
    {"restarts", [](const gang::GangResult& r) { return static_cast<double>(r.restarts); }},
    {"lost_unit_h", [](const gang::GangResult& r) { return r.lost_unit_h; }},
    {"utilisation", [](const gang::GangResult& r) { return r.utilisation; }},
    {"fairness", [](const gang::GangResult& r) { return r.fairness; }},
    {"unfinished", [](const gang::GangResult& r) { return static_cast<double>(r.unfinished); }}};
constexpr size_t kMakespan = 0;
constexpr size_t kLost = 6;

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
  ordered_json row{
      {"gpus", cell.units},
      {"per_node", cell.units_per_node},
      {"failures", cell.from_day ? "recorded" : gang::failure_setting_name(cell.setting)},
      {"failures_per_gpu_h", cell.mean_per_h},
      {"jobs", jobs_name(cell)},
      {"data", cell.with_data}};
  if (cell.from_day) row["from_day"] = *cell.from_day;
  return row;
}

// Means over seeds, of a row.
class RowMeans {
 public:
  RowMeans(const std::vector<gang::GangRun>& runs, const gang::GangSuite& suite, size_t cell)
      : runs_(runs), suite_(suite), cell_(cell) {}

  std::optional<double> of(const std::string& policy, size_t measure) const {
    const auto found = std::find(suite_.policies.begin(), suite_.policies.end(), policy);
    if (found == suite_.policies.end()) return std::nullopt;
    const auto number = static_cast<size_t>(found - suite_.policies.begin());
    return sim::estimate(values_of(runs_, cell_, number, kMeasures[measure].of)).mean;
  }

 private:
  const std::vector<gang::GangRun>& runs_;
  const gang::GangSuite& suite_;
  size_t cell_;
};

void add_ratio(std::vector<double>& into, std::optional<double> value, std::optional<double> to) {
  if (value && to && *to > 0) into.push_back(*value / *to - 1);
}

struct Goals {
  std::vector<double> makespan_to_capacity, lost_to_capacity, makespan_to_spread, lost_to_spread;
  std::vector<double> to_best, to_clairvoyant;
};

// The capacity-aware policy of the two that has the shorter makespan in the row.
std::string capacity_aware(const RowMeans& means) {
  const auto best = means.of("best-fit", kMakespan);
  const auto first = means.of("first-fit", kMakespan);
  return first && (!best || *first < *best) ? "first-fit" : "best-fit";
}

void add_row(const std::vector<gang::GangRun>& runs, const gang::GangSuite& suite, size_t cell,
             const std::string& policy, Goals& goals) {
  const RowMeans means(runs, suite, cell);
  const auto& settings = suite.cells[cell];
  const auto makespan = means.of(policy, kMakespan);
  const auto lost = means.of(policy, kLost);
  add_ratio(goals.to_best, makespan,
            means.of(suite.policies[best_rival(runs, suite, cell)], kMakespan));
  if (settings.units == 64)
    add_ratio(goals.to_clairvoyant, makespan, means.of("clairvoyant", kMakespan));
  if (settings.setting == gang::FailureSetting::kEqual) return;
  const auto capacity = capacity_aware(means);
  add_ratio(goals.makespan_to_capacity, makespan, means.of(capacity, kMakespan));
  add_ratio(goals.lost_to_capacity, lost, means.of(capacity, kLost));
  add_ratio(goals.makespan_to_spread, makespan, means.of("spread", kMakespan));
  add_ratio(goals.lost_to_spread, lost, means.of("spread", kLost));
}

// Null: no row has both.
ordered_json median_json(const std::vector<double>& values) {
  return values.empty() ? ordered_json() : ordered_json(median(values));
}

ordered_json goals_row(const std::string& policy, const char* level, const Goals& goals) {
  return {{"policy", policy},
          {"level", level},
          {"makespan_to_capacity", median_json(goals.makespan_to_capacity)},
          {"lost_to_capacity", median_json(goals.lost_to_capacity)},
          {"makespan_to_spread", median_json(goals.makespan_to_spread)},
          {"lost_to_spread", median_json(goals.lost_to_spread)},
          {"rows_over_best", std::count_if(goals.to_best.begin(), goals.to_best.end(),
                                           [](double over) { return over > 0.01; })},
          {"rows", goals.to_best.size()},
          {"worst_to_best", *std::max_element(goals.to_best.begin(), goals.to_best.end())},
          {"to_clairvoyant", median_json(goals.to_clairvoyant)}};
}

}  // namespace

bool has_mean(const ordered_json& estimate) {
  return estimate.is_object() && estimate["mean"].is_number();
}

ordered_json gang_rows_json(const std::vector<gang::GangRun>& runs, const gang::GangSuite& suite) {
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

const char* jobs_name(const gang::GangCell& cell) {
  return cell.from_trace ? "trace" : cell.large_jobs ? "large" : "made up";
}

ordered_json gang_sums_json(const std::vector<gang::GangRun>& runs, const gang::GangSuite& suite,
                            const std::string& rival,
                            const std::function<std::string(const gang::GangCell&)>& kind_of) {
  std::vector<std::string> kinds;
  for (const auto& cell : suite.cells)
    if (std::count(kinds.begin(), kinds.end(), kind_of(cell)) == 0)
      kinds.emplace_back(kind_of(cell));
  const auto sums = [&](const std::string& kind, const std::string& policy,
                        const Measure& measure) {
    std::vector<double> by_seed(suite.seeds);
    for (const auto& run : runs)
      if (suite.policies[run.policy] == policy && kind_of(suite.cells[run.cell]) == kind)
        by_seed[run.seed - suite.first_seed] += measure.of(run.result);
    return by_seed;
  };
  ordered_json rows = ordered_json::array();
  for (const auto& kind : kinds)
    for (const auto& policy : suite.policies) {
      ordered_json row{{"kind", kind}, {"policy", policy}, {"rival", rival}};
      for (const auto& measure : kMeasures) {
        const auto values = sums(kind, policy, measure);
        row[measure.name] = sim::estimate_json(values);
        row["differences"][measure.name] =
            sim::estimate_json(differences(values, sums(kind, rival, measure)));
      }
      rows.push_back(std::move(row));
    }
  return rows;
}

ordered_json gang_overall_json(const ordered_json& rows, const gang::GangSuite& suite) {
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

ordered_json gang_goals_json(const std::vector<gang::GangRun>& runs, const gang::GangSuite& suite) {
  ordered_json rows = ordered_json::array();
  for (const auto& policy : suite.policies) {
    if (policy == "clairvoyant") continue;
    Goals stress, published;
    for (size_t cell = 0; cell < suite.cells.size(); ++cell)
      add_row(runs, suite, cell, policy, suite.cells[cell].mean_per_h > 1e-3 ? stress : published);
    rows.push_back(goals_row(policy, "stress", stress));
    rows.push_back(goals_row(policy, "published", published));
  }
  return rows;
}

}  // namespace tierpilot::lab
