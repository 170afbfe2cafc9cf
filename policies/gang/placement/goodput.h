// What guards compare of decisions about gangs: how much of the units' time became work that
// counts.
#pragma once

#include <optional>

namespace tierpilot::gang {

// One try of a gang, whose units are all its own for as long.
struct TryUse {
  double held_h = 0;  // from when it was given them until its end
  // Of that, work that is kept: up to the checkpoint that the next try begins from, or all of it
  // where the try succeeded; none where the gang ended without success.
  double kept_h = 0;
  double stalled_h = 0;  // of `kept_h`, waiting for checkpoints to be taken
  // How long the kept work should have taken by its owner's estimate; empty: nobody told how much
  // it was.
  std::optional<double> estimated_h = {};
};

inline constexpr const char* kGoodput = "goodput";
inline constexpr double kLeastGoodput = 0;
inline constexpr double kMostGoodput = 1;

// (kept - stalled) / held, times the speed beside the estimated one where that is known and at most
// 1: to be faster than its owner thought is no merit of the units. A try that held its units for no
// time counts as 0, as does what is no number.
double goodput(const TryUse& use);

}  // namespace tierpilot::gang
