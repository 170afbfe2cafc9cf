// What is measured of where tasks run, and compared by guards.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/learning/bounded_measure.h"
#include "policies/placement/reward.h"

namespace tierpilot {

// Places in placement_measures().
inline constexpr size_t kReward = 0;    // of S1, when the data has been served
inline constexpr size_t kResponse = 1;  // from decision to end, see RelativeResponse

// "reward" and "response"; the bounds of rewards follow from their settings.
std::vector<BoundedMeasure> placement_measures(const RewardSettings& reward = {});

// Response times of tasks that differ by orders of magnitude, made alike: the time over the best
// candidate's estimate, over what that quotient usually is. 1 is usual; cut at kMost. Estimate and
// usual quotient do not depend on who decided, so that the comparison stays fair.
class RelativeResponse {
 public:
  static constexpr double kMost = 4;
  // Nothing for a time that cannot be. An estimate of 0 is unknown, and counts as 1 s.
  std::optional<double> of(double response_s, double estimate_s);

 private:
  double usual_ = 0;
  uint64_t count_ = 0;
};

}  // namespace tierpilot
