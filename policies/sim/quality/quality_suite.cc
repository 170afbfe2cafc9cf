#include "policies/sim/quality/quality_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/statistics.h"
#include "policies/sim/quality/family_curves.h"

namespace tierpilot::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kGeneratedCurves = 10;  // of each family

struct Run {
  size_t cell;
  std::string allocator;
  uint64_t seed;
  Result<TrainingResult> result = TrainingResult{};
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::vector<double> over_jobs(const std::vector<const Run*>& runs,
                              const std::function<double(const JobOutcome&)>& of) {
  std::vector<double> values;
  for (const auto* run : runs)
    for (const auto& job : run->result->jobs) values.push_back(of(job));
  return values;
}

std::vector<double> over_runs(const std::vector<const Run*>& runs,
                              const std::function<double(const TrainingResult&)>& of) {
  std::vector<double> values;
  for (const auto* run : runs) values.push_back(of(*run->result));
  return values;
}

Json measures(const std::vector<const Run*>& runs) {
  const auto runs_mean = [&](auto of) { return mean(over_runs(runs, of)); };
  Json row{{"mean_normalised_loss", runs_mean([](auto& r) { return r.mean_loss; })},
           {"mean_running_loss", runs_mean([](auto& r) { return r.mean_running_loss; })},
           {"loss_at_window_end", runs_mean([](auto& r) { return r.loss_at_end; })}};
  for (size_t i = 0; i < kLossLeft.size(); ++i) {
    const auto times = over_jobs(runs, [i](auto& job) { return job.reached_s[i]; });
    row[fmt::format("time_to_{:.0f}_percent_s", 100 * kLossLeft[i])] = {
        {"median", upper_median(times)}, {"mean", mean(times)}, {"p90", quantile(times, 0.9)}};
  }
  const auto completions = over_jobs(runs, [](auto& job) { return job.completion_s; });
  row["completion_s"] = {{"mean", mean(completions)}, {"p90", quantile(completions, 0.9)}};
  row["cores_by_loss_group"] = Json::array();
  for (size_t i = 0; i < kLossGroups.size(); ++i)
    row["cores_by_loss_group"].push_back(runs_mean([i](auto& r) { return r.group_shares[i]; }));
  row["longest_starved_s"] = quantile(over_jobs(runs, [](auto& job) { return job.starved_s; }), 1);
  row["moves_per_minute"] = runs_mean([](auto& r) { return r.moves_per_minute; });
  row["utilisation"] = runs_mean([](auto& r) { return r.utilisation; });
  row["rebalance_s"] = runs_mean([](auto& r) { return r.rebalance_s; });
  return row;
}

// Times of the same jobs beside those under fair: what the unluckiest and the typical one lose.
void add_beside_fair(Json& row, const std::vector<const Run*>& runs,
                     const std::vector<const Run*>& fair,
                     const std::vector<const Run*>& clairvoyant) {
  const auto loss = [](auto& r) { return r.mean_loss; };
  const double own = mean(over_runs(runs, loss)), equal = mean(over_runs(fair, loss)),
               best = mean(over_runs(clairvoyant, loss));
  row["loss_beside_fair"] = equal > 0 ? own / equal : 1;
  row["clairvoyant_gain_share"] = equal > best ? Json((equal - own) / (equal - best)) : Json();
  const auto time = [](const JobOutcome& job) { return job.reached_s[2]; };
  const auto own_times = over_jobs(runs, time), fair_times = over_jobs(fair, time);
  std::vector<double> ratios;
  for (size_t i = 0; i < own_times.size(); ++i)
    if (fair_times[i] > 0) ratios.push_back(own_times[i] / fair_times[i]);
  row["slowest_job_beside_fair"] = quantile(ratios, 1);
  const auto later =
      std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio > 1.2; });
  row["jobs_20_percent_later"] =
      static_cast<double>(later) / static_cast<double>(std::max<size_t>(ratios.size(), 1));
}

void run_all(std::vector<Run>& runs, const std::vector<TrainingWorld>& worlds,
             const QualityOptions& options) {
  std::atomic<size_t> next{0};
  std::mutex telling;
  size_t done = 0;
  const auto work = [&] {
    for (size_t i = next++; i < runs.size(); i = next++) {
      auto& run = runs[i];
      run.result = run_training(worlds[run.cell * options.seeds + (run.seed - options.first_seed)],
                                run.allocator);
      const std::lock_guard lock(telling);
      if (options.progress)
        options.progress(static_cast<double>(++done) / static_cast<double>(runs.size()));
    }
  };
  std::vector<std::jthread> threads;
  for (uint32_t i = 1; i < options.threads; ++i) threads.emplace_back(work);
  work();
}

std::vector<std::string> with_references(std::vector<std::string> names) {
  for (const char* reference : {"fair", "clairvoyant"})
    if (std::find(names.begin(), names.end(), reference) == names.end())
      names.emplace_back(reference);
  return names;
}

Json summary(const std::vector<Run>& runs, const QualityOptions& options,
             const std::vector<std::string>& names) {
  Json cells = Json::array(), each = Json::array();
  for (size_t cell = 0; cell < options.cells.size(); ++cell) {
    const auto of = [&](const std::string& name) {
      std::vector<const Run*> found;
      for (const auto& run : runs)
        if (run.cell == cell && run.allocator == name) found.push_back(&run);
      return found;
    };
    std::vector<Json> rows;
    for (const auto& name : names) {
      Json row{{"cell", options.cells[cell].name}, {"policy", name}};
      row.update(measures(of(name)));
      add_beside_fair(row, of(name), of("fair"), of("clairvoyant"));
      rows.push_back(std::move(row));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const Json& a, const Json& b) {
      return a["mean_normalised_loss"].get<double>() > b["mean_normalised_loss"].get<double>();
    });
    for (auto& row : rows) cells.push_back(std::move(row));
  }
  for (const auto& run : runs) {
    Json row{{"cell", options.cells[run.cell].name}, {"policy", run.allocator}, {"seed", run.seed}};
    row.update(measures({&run}));
    each.push_back(std::move(row));
  }
  return {{"suite", "quality"},
          {"seeds", options.seeds},
          {"first_seed", options.first_seed},
          {"cells", std::move(cells)},
          {"runs", std::move(each)}};
}

}  // namespace

const std::vector<TrainingCell>& quality_cells() {
  static const std::vector<TrainingCell> cells{
      {.name = "published", .least_work_s = 200, .most_work_s = 1600},
      {.name = "published-120s", .period_s = 120, .least_work_s = 200, .most_work_s = 1600},
      {.name = "jobs-160",
       .cores = 40,
       .jobs = 160,
       .mean_gap_s = 7.5,
       .least_work_s = 200,
       .most_work_s = 1600},
      {.name = "jobs-800",
       .cores = 1000,
       .jobs = 800,
       .mean_gap_s = 1,
       .period_s = 60,
       .max_cores = 32,
       .least_work_s = 1000,
       .most_work_s = 8000}};
  return cells;
}

Result<Json> evaluate_quality(const QualityOptions& options) {
  const auto names = with_references(options.allocators);
  std::vector<TrainingWorld> worlds;
  std::vector<Run> runs;
  for (size_t cell = 0; cell < options.cells.size(); ++cell)
    for (uint64_t seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed) {
      auto world = draw_world(
          options.cells[cell],
          options.curves.empty() ? family_curves(seed, kGeneratedCurves) : options.curves, seed,
          options.trace_s);
      if (!world) return tl::unexpected(world.error());
      worlds.push_back(std::move(*world));
      for (const auto& name : names)
        runs.push_back({.cell = cell, .allocator = name, .seed = seed});
    }
  run_all(runs, worlds, options);
  for (const auto& run : runs)
    if (!run.result) return tl::unexpected(run.result.error());
  return summary(runs, options, names);
}

}  // namespace tierpilot::sim
