// What the network of `ac` sees: of each unit of each candidate placement the same few numbers,
// whatever the size of cluster and job.
#pragma once

#include <array>
#include <vector>

#include "policies/gang/placement/candidates.h"

namespace tierpilot::gang {

inline constexpr size_t kUnitFeatures = 19;
inline constexpr size_t kStateFeatures = 11;
using UnitFeatures = std::array<float, kUnitFeatures>;
using StateFeatures = std::array<float, kStateFeatures>;

struct AcCandidate {
  Units units;
  double hours = 0;  // expected, see expected_hours
  std::vector<UnitFeatures> seen;
};

struct AcInput {
  std::vector<AcCandidate> candidates;  // no two alike
  size_t heuristic = 0;                 // the one with the least expected hours
  StateFeatures state{};
};

// What it is told of failures: estimated rates; or what they are estimated from, each unit's
// failures so far, in the last two weeks, and how long ago the last one was.
enum class AcView : uint8_t { kRates, kHistories };

AcInput ac_input(const PlacementState& state, const Job& job, AcView view = AcView::kRates);

}  // namespace tierpilot::gang
