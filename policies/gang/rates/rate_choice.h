// Which way of looking at a history foretells best: tried on its later parts, never on what is to
// be foretold.
#pragma once

#include <optional>

#include "policies/gang/rates/forecast.h"
#include "policies/gang/rates/rate_model.h"

namespace tierpilot::gang {

// What came true for the units that were in service at `at_day`, until `end_day`.
struct Outcome {
  std::vector<uint32_t> units;
  std::vector<double> days;  // in service; of one that was taken out for a failure, all
  std::vector<uint64_t> failures;
};
Outcome outcome_of(const FailureHistory& history, double at_day, double end_day);

// Mean rates per day, as simple as they can be.
struct SimpleRates {
  std::string name;
  std::vector<double> per_day;  // of each unit; 0 for units that were never in service
};
// "all alike", "count so far", and "mean of COLUMN" for each group, from what was until `at_day`.
std::vector<SimpleRates> simple_rates(const FailureHistory& history, double at_day);

struct RateChoice {
  PieceSettings settings;
  // Powers to which the rates of the model, and of the simple ones in their order, are taken;
  // sum 1.
  std::vector<double> weights{1};
  double spread = 0;  // what rates vary beyond what the model knows: variance over mean squared
};

// `at_day`: nothing later is looked at. Deterministic.
RateChoice choose_rates(const FailureHistory& history, double at_day);

// Rates of the units that are in service at `at_day`, and what the model says matters.
struct FleetRates {
  std::vector<UnitRate> rates;
  std::vector<FactorEvidence> evidence;
  double cluster_size = 1;
};
FleetRates fleet_rates(const FailureHistory& history, const RateChoice& choice, double at_day,
                       double horizon_days);

CountForecast forecast_of(const UnitRate& rate, double spread, double days);

}  // namespace tierpilot::gang
