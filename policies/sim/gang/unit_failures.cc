#include "policies/sim/gang/unit_failures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace tierpilot::gang {
namespace {

constexpr double kPastH = 90 * 24;
constexpr double kMaxUntilH = 24 * 3650;
constexpr const char* kNames[] = {"equal", "differing", "clustered", "drifting"};

// A tenth of the units, or nodes, has most of the failures.
double bad_or_good(SeededRandom& random) {
  return random.chance(0.1) ? 7.75 : 0.25;
}

// Mean failures an hour of a unit before and after rates change.
struct Rate {
  double before, after;
};

std::vector<Rate> draw_rates(const FailureMix& mix, SeededRandom& random) {
  std::vector<Rate> rates;
  double of_node = 1;
  for (uint32_t unit = 0; unit < mix.units; ++unit) {
    if (unit % mix.units_per_node == 0) of_node = bad_or_good(random);
    const double own = bad_or_good(random);
    const double later = bad_or_good(random);
    Rate rate{1, 1};
    if (mix.setting == FailureSetting::kDiffering) rate = {own, own};
    if (mix.setting == FailureSetting::kClustered) rate = {of_node, of_node};
    if (mix.setting == FailureSetting::kDrifting) rate = {own, random.chance(0.5) ? later : own};
    rates.push_back({rate.before * mix.mean_per_h, rate.after * mix.mean_per_h});
  }
  return rates;
}

}  // namespace

const char* failure_setting_name(FailureSetting setting) {
  return kNames[static_cast<size_t>(setting)];
}

double UnitFailures::next(uint32_t unit, double from_h) const {
  const auto& times = times_h[unit];
  const auto found = std::lower_bound(times.begin(), times.end(), from_h);
  return found == times.end() ? std::numeric_limits<double>::infinity() : *found;
}

UnitFailures draw_failures(const FailureMix& mix) {
  SeededRandom of_rates(derived_seed(mix.seed, "gang failure rates"));
  SeededRandom of_times(derived_seed(mix.times_seed, "gang failure times"));
  const double until_h = std::min(mix.until_h, kMaxUntilH);
  UnitFailures failures;
  failures.past_h = kPastH;
  failures.changes_h = mix.changes_h;
  // In clusters of time, one failure brings another soon after it every other time.
  const double follow = mix.setting == FailureSetting::kClustered ? 0.5 : 0;
  for (const auto& rate : draw_rates(mix, of_rates)) {
    auto& times = failures.times_h.emplace_back();
    auto& before = failures.past_times_h.emplace_back();
    failures.per_h_before.push_back(rate.before);
    failures.per_h_after.push_back(rate.after);
    for (double at_h = -kPastH; at_h < until_h;) {
      const double per_h = (at_h < failures.changes_h ? rate.before : rate.after) * (1 - follow);
      at_h += of_times.exponential(1 / per_h);
      for (double again_h = at_h;;) {
        if (again_h < 0)
          before.push_back(again_h);
        else if (again_h < until_h)
          times.push_back(again_h);
        if (!of_times.chance(follow)) break;
        again_h += of_times.exponential(12);
      }
    }
    std::sort(times.begin(), times.end());
    std::sort(before.begin(), before.end());
    failures.past.push_back(static_cast<double>(before.size()));
  }
  return failures;
}

}  // namespace tierpilot::gang
