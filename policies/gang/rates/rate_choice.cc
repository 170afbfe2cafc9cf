#include "policies/gang/rates/rate_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace tierpilot::gang {
namespace {

constexpr double kSpreads[] = {0, 0.05, 0.1, 0.2, 0.4, 0.7, 1, 1.5, 2.5, 4, 7, 12, 20};
constexpr double kFolds[] = {0.5, 0.75};  // of the time before: known; the rest of it is foretold
constexpr double kEnough = 3;             // nats by which a change has to be better
constexpr double kStep = 0.25;

struct Fold {
  double at_day = 0;
  double end_day = 0;
  Outcome outcome;
  std::vector<SimpleRates> simple;
};

std::vector<Fold> folds_before(const FailureHistory& history, double at_day) {
  std::vector<Fold> folds;
  for (const double share : kFolds) {
    const double day = history.begin_day + share * (at_day - history.begin_day);
    folds.push_back({day, at_day, outcome_of(history, day, at_day), simple_rates(history, day)});
  }
  return folds;
}

struct Score {
  double likelihood = -1e300;
  double spread = 0;
};

// Of the best spread. Rates and outcomes are of the same units in the same order.
Score score(const std::vector<Fold>& folds, const std::vector<std::vector<UnitRate>>& rates) {
  Score best;
  for (const double spread : kSpreads) {
    double sum = 0;
    for (size_t f = 0; f < folds.size(); ++f)
      for (size_t i = 0; i < rates[f].size(); ++i)
        sum += forecast_of(rates[f][i], spread, folds[f].outcome.days[i])
                   .log_probability(folds[f].outcome.failures[i]);
    if (sum > best.likelihood) best = {sum, spread};
  }
  return best;
}

std::vector<std::vector<UnitRate>> rates_with(const FailureHistory& history,
                                              const std::vector<Fold>& folds,
                                              const PieceSettings& settings) {
  std::vector<std::vector<UnitRate>> rates;
  for (const auto& fold : folds)
    rates.push_back(RateModel(history, settings, fold.at_day).rates(fold.end_day - fold.at_day));
  return rates;
}

// The model's rates and simple ones, to powers.
void pool(std::vector<UnitRate>& rates, const std::vector<SimpleRates>& simple,
          const std::vector<double>& weights) {
  for (auto& rate : rates) {
    double log = weights[0] * std::log(std::max(rate.per_day, 1e-300));
    for (size_t i = 1; i < weights.size(); ++i)
      if (weights[i] > 0) log += weights[i] * std::log(simple[i - 1].per_day[rate.unit]);
    rate.per_day = std::exp(log);
  }
}

// One change after the other, each kept when it foretells better.
PieceSettings choose_settings(const FailureHistory& history, const std::vector<Fold>& folds,
                              double span_days, Score& best,
                              std::vector<std::vector<UnitRate>>& rates) {
  PieceSettings chosen;
  rates = rates_with(history, folds, chosen);
  best = score(folds, rates);
  std::vector<std::function<void(PieceSettings&)>> changes;
  for (const double days : {0.02, 0.1})
    changes.emplace_back([=](PieceSettings& s) { s.cluster_days = days * span_days; });
  for (const double share : {1.0, 0.4})
    changes.emplace_back([=](PieceSettings& s) { s.half_life_days = share * span_days; });
  changes.emplace_back([](PieceSettings& s) { s.since_failure = true; });
  changes.emplace_back([](PieceSettings& s) { s.pairs = true; });
  for (const auto& change : changes) {
    PieceSettings tried = chosen;
    change(tried);
    auto with = rates_with(history, folds, tried);
    const Score now = score(folds, with);
    if (now.likelihood < best.likelihood + kEnough) continue;
    best = now;
    chosen = tried;
    rates = std::move(with);
  }
  return chosen;
}

// Moves weight from the model to one simple rate after the other, while that helps.
std::vector<double> choose_weights(const std::vector<Fold>& folds,
                                   const std::vector<std::vector<UnitRate>>& rates, Score& best) {
  std::vector<double> chosen(folds.front().simple.size() + 1);
  chosen[0] = 1;
  for (bool better = true; better && chosen[0] > 0;) {
    better = false;
    auto next = chosen;
    for (size_t i = 1; i < chosen.size(); ++i) {
      auto tried = chosen;
      tried[0] -= kStep;
      tried[i] += kStep;
      auto pooled = rates;
      for (size_t f = 0; f < folds.size(); ++f) pool(pooled[f], folds[f].simple, tried);
      const Score now = score(folds, pooled);
      if (now.likelihood < best.likelihood + kEnough) continue;
      best = now;
      next = tried;
      better = true;
    }
    chosen = next;
  }
  return chosen;
}

}  // namespace

CountForecast forecast_of(const UnitRate& rate, double spread, double days) {
  return {rate.per_day * days, 1 / (1 / rate.shape + spread)};
}

RateChoice choose_rates(const FailureHistory& history, double at_day) {
  const auto folds = folds_before(history, at_day);
  Score best;
  std::vector<std::vector<UnitRate>> rates;
  RateChoice choice;
  choice.settings = choose_settings(history, folds, at_day - history.begin_day, best, rates);
  choice.weights = choose_weights(folds, rates, best);
  choice.spread = best.spread;
  return choice;
}

FleetRates fleet_rates(const FailureHistory& history, const RateChoice& choice, double at_day,
                       double horizon_days) {
  const RateModel model(history, choice.settings, at_day);
  FleetRates fleet{model.rates(horizon_days), model.evidence(), model.cluster_size()};
  pool(fleet.rates, simple_rates(history, at_day), choice.weights);
  return fleet;
}

}  // namespace tierpilot::gang
