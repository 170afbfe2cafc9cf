#include "policies/gang/rates/rate_trial.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierpilot::gang {
namespace {

TrialRow judge(std::string name, const std::vector<double>& scores, const Outcome& outcome) {
  return {std::move(name), area_under_curve(scores, outcome.failures),
          lift(scores, outcome.failures, kLiftShare)};
}

void judge_intervals(const FleetRates& fleet, const Outcome& outcome, RateTrial& trial) {
  double covered = 0;
  double whole = 0;
  for (size_t i = 0; i < outcome.units.size(); ++i) {
    const auto forecast = forecast_of(fleet.rates[i], trial.choice.spread, outcome.days[i]);
    covered += covered_share(forecast, outcome.failures[i], kIntervalShare);
    whole += outcome.failures[i] >= forecast.quantile((1 - kIntervalShare) / 2) &&
             outcome.failures[i] <= forecast.quantile((1 + kIntervalShare) / 2);
    trial.foretold += forecast.mean;
  }
  trial.coverage = covered / static_cast<double>(outcome.units.size());
  trial.coverage_whole = whole / static_cast<double>(outcome.units.size());
}

}  // namespace

Result<RateTrial> try_rates(const FailureHistory& history, double train) {
  RateTrial trial;
  trial.split_day = history.begin_day + train * (history.end_day - history.begin_day);
  trial.failures_before = static_cast<uint64_t>(
      std::count_if(history.failures.begin(), history.failures.end(),
                    [&](const Failure& failure) { return failure.day < trial.split_day; }));
  const auto outcome = outcome_of(history, trial.split_day, history.end_day);
  trial.units = outcome.units.size();
  for (const uint64_t count : outcome.failures) {
    trial.failures_after += count;
    trial.units_failed += count > 0;
  }
  if (trial.failures_before == 0 || trial.failures_after == 0)
    return fail(ErrorCode::kInvalid,
                fmt::format("{} failures before day {:.6g} and {} after it, of units in service "
                            "then: a trial needs some of both; choose another --train",
                            trial.failures_before, trial.split_day, trial.failures_after));
  trial.choice = choose_rates(history, trial.split_day);
  const auto fleet =
      fleet_rates(history, trial.choice, trial.split_day, history.end_day - trial.split_day);
  std::vector<double> scores;
  for (const auto& rate : fleet.rates) scores.push_back(rate.per_day);
  trial.model = judge("model", scores, outcome);
  for (const auto& simple : simple_rates(history, trial.split_day)) {
    scores.clear();
    for (const uint32_t unit : outcome.units) scores.push_back(simple.per_day[unit]);
    trial.simple.push_back(judge(simple.name, scores, outcome));
  }
  judge_intervals(fleet, outcome, trial);
  return trial;
}

}  // namespace tierpilot::gang
