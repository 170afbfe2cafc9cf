// How well rates that were learnt from the first part of a history foretell the rest of it.
#pragma once

#include "base/result.h"
#include "policies/gang/rates/rate_choice.h"

namespace tierpilot::gang {

inline constexpr double kIntervalShare = 0.9;
inline constexpr double kLiftShare = 0.1;

struct TrialRow {
  std::string name;
  double auc = 0.5;
  double lift = 1;
};

struct RateTrial {
  double split_day = 0;
  uint64_t units = 0;  // in service at the split: those that are judged
  uint64_t units_failed = 0;
  uint64_t failures_before = 0;
  uint64_t failures_after = 0;
  double foretold = 0;  // failures after the split
  TrialRow model;
  std::vector<TrialRow> simple;
  double coverage = 0;        // of the intervals: see covered_share
  double coverage_whole = 0;  // of the same intervals rounded outwards to whole counts
  RateChoice choice;
};

// `train`: the share of the history's time that is known, within (0, 1). kInvalid when a part of it
// holds no failure.
Result<RateTrial> try_rates(const FailureHistory& history, double train);

}  // namespace tierpilot::gang
