// When each unit of a made-up cluster fails, whatever is placed on it: so that policies are
// compared on the same failures.
#pragma once

#include <cstdint>
#include <vector>

namespace tierpilot::gang {

// How failure rates are spread over units and time; each has the same mean over the fleet.
enum class FailureSetting { kEqual, kDiffering, kClustered, kDrifting };
const char* failure_setting_name(FailureSetting setting);

struct UnitFailures {
  std::vector<std::vector<double>> times_h;            // of each unit, from 0 on
  std::vector<double> past;                            // failures seen in the time before
  std::vector<std::vector<double>> past_times_h = {};  // when those were, below 0, rising; or empty
  // The rates behind them, before and from `changes_h` on: for training, which then need not wait
  // for rare failures to learn what a placement costs.
  std::vector<double> per_h_before, per_h_after;
  double changes_h = 0;
  double past_h = 0;  // how long that was

  // The first failure of a unit from `from_h` on; infinity: none.
  double next(uint32_t unit, double from_h) const;
  double rate(uint32_t unit, double at_h) const {
    return (at_h < changes_h ? per_h_before : per_h_after)[unit];
  }
};

struct FailureMix {
  FailureSetting setting = FailureSetting::kDiffering;
  double mean_per_h = 1e-3;  // of a unit
  uint32_t units = 16;
  uint32_t units_per_node = 4;
  double until_h = 0;
  double changes_h = 0;     // when rates are drawn anew, of the setting that drifts
  uint64_t seed = 1;        // of the rates
  uint64_t times_seed = 1;  // of when units fail
};
UnitFailures draw_failures(const FailureMix& mix);

}  // namespace tierpilot::gang
