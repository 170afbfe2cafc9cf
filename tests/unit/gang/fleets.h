// Made-up fleets whose failures have a known cause.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "base/random.h"
#include "policies/gang/rates/history.h"

namespace tierpilot::gang {

enum class Cause { kNothing, kGroups, kUnits, kBursts, kRepairs, kHeavyTails, kNodes };

inline constexpr uint32_t kFleetUnits = 1200;
inline constexpr double kFleetDays = 400;

class FleetMaker {
 public:
  FleetMaker(Cause cause, uint64_t seed) : cause_(cause), random_(derived_seed(seed, "fleet")) {}

  FailureHistory make() {
    FailureHistory fleet{.units = {},
                         .kinds = {"xid"},
                         .columns = {},
                         .has_nodes = true,
                         .services = {},
                         .failures = {},
                         .begin_day = 0,
                         .end_day = kFleetDays,
                         .whole_fleet = true};
    fleet.columns = {{"node", names("n", kFleetUnits / 4)},
                     {"model", names("m", 3)},
                     {"batch", names("b", 8)},
                     {"rack", names("r", 20)}};
    for (int i = 0; i < 300; ++i) nodes_.push_back(cause_ == Cause::kNodes ? gamma(0.3) : 1);
    for (uint32_t unit = 0; unit < kFleetUnits; ++unit) {
      fleet.units.push_back("u" + std::to_string(unit));
      const std::vector<int32_t> levels{
          static_cast<int32_t>(unit / 4), static_cast<int32_t>(random_.below(3)),
          static_cast<int32_t>(random_.below(8)), static_cast<int32_t>(unit / 60)};
      fleet.services.push_back({unit, 0, kFleetDays, levels});
      add_failures(fleet, unit, levels);
    }
    std::stable_sort(fleet.failures.begin(), fleet.failures.end(),
                     [](const auto& a, const auto& b) { return a.day < b.day; });
    return fleet;
  }

 private:
  static std::vector<std::string> names(const std::string& prefix, uint32_t count) {
    std::vector<std::string> all;
    for (uint32_t i = 0; i < count; ++i) all.push_back(prefix + std::to_string(i));
    return all;
  }
  // A draw of mean 1 and this shape at most 1: the sum of exponentials would need a whole one
  // (Ahrens and Dieter's GS, 1974).
  double gamma(double shape) {
    const double b = 1 + shape / std::exp(1.0);
    for (;;) {
      const double p = b * random_.unit();
      const double x = p <= 1 ? std::pow(p, 1 / shape) : -std::log((b - p) / shape);
      if (random_.unit() <= (p <= 1 ? std::exp(-x) : std::pow(x, shape - 1))) return x / shape;
    }
  }
  double factor(const std::vector<int32_t>& levels) {
    switch (cause_) {
      case Cause::kGroups:
        return (levels[1] == 0 ? 3.0 : 0.6) * (levels[2] < 2 ? 2.5 : 0.5) *
               (levels[3] % 3 == 0 ? 1.5 : 0.8);
      case Cause::kUnits:
        return gamma(0.4);
      case Cause::kHeavyTails:
        return 0.3 * std::pow(1 - random_.unit(), -1 / 1.3);
      case Cause::kNodes:
        return nodes_[levels[0]];
      default:
        return 1;
    }
  }
  void add_failures(FailureHistory& fleet, uint32_t unit, const std::vector<int32_t>& levels) {
    double per_day = 0.0015 * factor(levels);
    const bool bad = cause_ == Cause::kRepairs && random_.chance(0.15);
    const double repaired = random_.unit() * kFleetDays;
    for (double day = random_.exponential(1 / (per_day * (bad ? 12 : 1))); day < kFleetDays;) {
      fleet.failures.push_back({day, unit, 0});
      if (cause_ == Cause::kBursts)
        for (double more = day; random_.chance(0.75);) {
          more += random_.exponential(0.5);
          if (more < kFleetDays) fleet.failures.push_back({more, unit, 0});
        }
      day += random_.exponential(1 / (per_day * (bad && day < repaired ? 12 : 1)));
    }
  }

  const Cause cause_;
  SeededRandom random_;
  std::vector<double> nodes_;
};

}  // namespace tierpilot::gang
