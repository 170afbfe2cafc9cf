#include <algorithm>

#include "policies/gang/rates/rate_choice.h"

namespace tierpilot::gang {
namespace {

constexpr double kPrior =
    0.5;  // failures that a group is thought to have had besides, at the fleet's rate
constexpr double kDaysToLeave = 1;

struct Sums {
  double failures = 0;
  double days = 0;
  double rate(double fleet) const { return (failures + kPrior) / (days + kPrior / fleet); }
};

// The service a failure fell into, or the unit's last one that began before it.
const Service* service_at(const std::vector<const Service*>& services, double day) {
  const Service* found = services.empty() ? nullptr : services.front();
  for (const auto* service : services)
    if (service->begin_day <= day) found = service;
  return found;
}

}  // namespace

Outcome outcome_of(const FailureHistory& history, double at_day, double end_day) {
  std::vector<uint64_t> failures(history.units.size());
  std::vector<double> last(history.units.size(), -1);
  for (const auto& failure : history.failures)
    if (failure.day >= at_day && failure.day < end_day + 1e-9) {
      ++failures[failure.unit];
      last[failure.unit] = failure.day;
    }
  std::vector<double> days(history.units.size());
  std::vector<double> until(history.units.size());
  std::vector<bool> serves(history.units.size());
  for (const auto& service : history.services) {
    const double begin = std::max(service.begin_day, at_day);
    const double end = std::min(service.end_day, end_day);
    if (service.begin_day <= at_day && service.end_day > at_day) serves[service.unit] = true;
    if (end > begin) days[service.unit] += end - begin;
    until[service.unit] = std::max(until[service.unit], end);
  }
  Outcome outcome;
  for (uint32_t unit = 0; unit < history.units.size(); ++unit) {
    if (!serves[unit]) continue;
    const bool taken_out = failures[unit] > 0 && last[unit] >= until[unit] - kDaysToLeave;
    outcome.units.push_back(unit);
    outcome.days.push_back(taken_out ? end_day - at_day : days[unit]);
    outcome.failures.push_back(failures[unit]);
  }
  return outcome;
}

std::vector<SimpleRates> simple_rates(const FailureHistory& history, double at_day) {
  std::vector<std::vector<const Service*>> of_unit(history.units.size());
  for (const auto& service : history.services)
    if (service.begin_day <= at_day) of_unit[service.unit].push_back(&service);
  Sums fleet;
  std::vector<Sums> units(history.units.size());
  std::vector<std::vector<Sums>> groups;
  for (const auto& column : history.columns) groups.emplace_back(column.levels.size());
  const auto add = [&](const Service& service, double failures, double days) {
    std::vector<Sums*> sums{&fleet, &units[service.unit]};
    for (size_t i = 0; i < groups.size(); ++i)
      if (service.levels[i] >= 0) sums.push_back(&groups[i][service.levels[i]]);
    for (auto* each : sums) {
      each->failures += failures;
      each->days += days;
    }
  };
  for (const auto& services : of_unit)
    for (const auto* service : services)
      add(*service, 0, std::min(service->end_day, at_day) - service->begin_day);
  for (const auto& failure : history.failures)
    if (failure.day < at_day)
      if (const auto* service = service_at(of_unit[failure.unit], failure.day)) add(*service, 1, 0);
  const double per_day = fleet.days > 0 ? std::max(fleet.failures, kPrior) / fleet.days : 1;
  std::vector<SimpleRates> all{{"all alike", std::vector<double>(units.size(), per_day)},
                               {"count so far", {}}};
  for (const auto& unit : units) all[1].per_day.push_back(unit.rate(per_day));
  for (size_t i = 0; i < groups.size(); ++i) {
    SimpleRates mean{"mean of " + history.columns[i].name, {}};
    for (const auto& services : of_unit) {
      const int32_t level = services.empty() ? kUnknownLevel : services.back()->levels[i];
      mean.per_day.push_back(level >= 0 ? groups[i][level].rate(per_day) : per_day);
    }
    all.push_back(std::move(mean));
  }
  return all;
}

}  // namespace tierpilot::gang
