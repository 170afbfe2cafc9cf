#include "policies/gang/rates/history_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policies/gang/rates/group_levels.h"
#include "policies/gang/rates/history_tables.h"

namespace tierpilot::gang {
namespace {

constexpr double kSameDay = 1;  // a unit taken out for a failure may be gone a little before it
constexpr uint32_t kMaxFleet = 10'000'000;
constexpr size_t kMaxLevels = 100'000'000;

struct Reading {
  HistoryTable failures;
  HistoryTable installed;  // empty without such a file
  Names units;
  FailureHistory history;
};

void find_span(Reading& reading) {
  auto& history = reading.history;
  double begin = std::numeric_limits<double>::infinity();
  double end = -begin;
  for (const auto* table : {&reading.failures, &reading.installed})
    for (const auto& row : table->rows)
      for (const double day : {row.begin_day, row.end_day})
        if (!std::isnan(day)) {
          begin = std::min(begin, day);
          end = std::max(end, day);
        }
  history.begin_day = begin;
  history.end_day = end;
}

void add_failures(Reading& reading) {
  Names kinds;
  for (const auto& row : reading.failures.rows) {
    const uint32_t unit = reading.units.number(row.unit);
    if (std::isnan(row.begin_day)) continue;
    reading.history.failures.push_back({row.begin_day, unit, kinds.number(row.kind)});
  }
  std::stable_sort(reading.history.failures.begin(), reading.history.failures.end(),
                   [](const Failure& a, const Failure& b) { return a.day < b.day; });
  reading.history.kinds = kinds.names();
}

void add_installed(Reading& reading) {
  auto& history = reading.history;
  for (size_t i = 0; i < reading.installed.rows.size(); ++i) {
    const auto& row = reading.installed.rows[i];
    const double begin = std::isnan(row.begin_day) ? history.begin_day : row.begin_day;
    const double end = std::isnan(row.end_day) ? history.end_day : row.end_day;
    // The row's number stands for its levels until they are looked up.
    history.services.push_back(
        {reading.units.number(row.unit), begin, end, {static_cast<int32_t>(i)}});
  }
}

// Units that no installation names are in service all the time, but for repairs.
void add_others(Reading& reading) {
  auto& history = reading.history;
  std::vector<bool> installed(reading.units.names().size());
  for (const auto& service : history.services) installed[service.unit] = true;
  std::vector<double> since(installed.size(), history.begin_day);
  if (reading.failures.has_repairs)
    for (const auto& row : reading.failures.rows) {
      const uint32_t unit = reading.units.number(row.unit);
      if (installed[unit] || std::isnan(row.begin_day)) continue;
      if (row.begin_day > since[unit])
        history.services.push_back({unit, since[unit], row.begin_day, {kUnknownLevel}});
      since[unit] = std::max(since[unit], std::isnan(row.end_day) ? history.end_day : row.end_day);
    }
  for (uint32_t unit = 0; unit < installed.size(); ++unit)
    if (!installed[unit] && since[unit] < history.end_day)
      history.services.push_back({unit, since[unit], history.end_day, {kUnknownLevel}});
}

// What two rows tell of one unit would count twice, and halve its rate.
void part_services(FailureHistory& history) {
  for (size_t i = 1; i < history.services.size(); ++i) {
    const Service& before = history.services[i - 1];
    Service& later = history.services[i];
    if (later.unit != before.unit || later.begin_day >= before.end_day) continue;
    ++history.overlapping_services;
    later.begin_day = before.end_day;
    later.end_day = std::max(later.begin_day, later.end_day);
  }
}

// After part_services(): of a unit they begin and end one after the other.
void count_outside(FailureHistory& history) {
  std::vector<std::vector<const Service*>> of_unit(history.units.size());
  for (const auto& service : history.services) of_unit[service.unit].push_back(&service);
  for (const auto& failure : history.failures) {
    const auto& services = of_unit[failure.unit];
    const auto next = std::partition_point(
        services.begin(), services.end(),
        [&](const auto* service) { return service->end_day + kSameDay < failure.day; });
    history.outside_service +=
        next == services.end() || failure.day < (*next)->begin_day - kSameDay;
  }
}

Status check(const HistoryFiles& files, const Reading& reading) {
  if (reading.history.failures.empty())
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}' has no failure: there is nothing to learn from",
                            files.failures.string()));
  if (!(reading.history.end_day > reading.history.begin_day))
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}': all failures are at day {}: a rate needs some time",
                            files.failures.string(), reading.history.begin_day));
  if (files.fleet && *files.fleet > kMaxFleet)
    return fail(ErrorCode::kInvalid, fmt::format("a fleet has at most {} units", kMaxFleet));
  if (files.fleet && *files.fleet < reading.units.names().size())
    return fail(ErrorCode::kInvalid,
                fmt::format("the fleet is said to have {} units, but the files name {}",
                            *files.fleet, reading.units.names().size()));
  return {};
}

// Of each service a level of each group is kept.
Status check_groups(const HistoryFiles& files, const Reading& reading) {
  const size_t groups = reading.failures.groups.size() + reading.installed.groups.size();
  if (reading.history.services.size() * groups <= kMaxLevels) return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("'{}': {} groups of {} services are more than can be learned from; leave "
                          "out columns that tell nothing of units",
                          files.failures.string(), groups, reading.history.services.size()));
}

bool names_idle_units(const HistoryTable& failures) {
  return std::any_of(failures.rows.begin(), failures.rows.end(),
                     [](const auto& row) { return std::isnan(row.begin_day); });
}

// Units that did not fail come last.
bool is_before(const HistoryRow& a, const HistoryRow& b) {
  if (std::isnan(a.begin_day) || std::isnan(b.begin_day))
    return std::isnan(b.begin_day) && !std::isnan(a.begin_day);
  return a.begin_day < b.begin_day;
}

}  // namespace

Result<FailureHistory> read_failure_history(const HistoryFiles& files) {
  Reading reading;
  auto failures = read_failures(files.failures);
  if (!failures) return tl::unexpected(failures.error());
  reading.failures = std::move(*failures);
  if (!files.installed.empty()) {
    auto installed = read_installations(files.installed);
    if (!installed) return tl::unexpected(installed.error());
    reading.installed = std::move(*installed);
  }
  std::stable_sort(reading.failures.rows.begin(), reading.failures.rows.end(), is_before);
  find_span(reading);
  add_failures(reading);
  add_installed(reading);
  if (auto status = check(files, reading); !status) return tl::unexpected(status.error());
  for (uint32_t i = 0; reading.units.names().size() < files.fleet.value_or(0); ++i)
    reading.units.number(fmt::format("(unnamed {})", i + 1));
  add_others(reading);
  if (auto status = check_groups(files, reading); !status) return tl::unexpected(status.error());
  auto& history = reading.history;
  history.units = reading.units.names();
  history.whole_fleet =
      !files.installed.empty() || files.fleet || names_idle_units(reading.failures);
  set_group_levels(reading.failures, reading.installed, history);
  std::stable_sort(history.services.begin(), history.services.end(),
                   [](const Service& a, const Service& b) {
                     return std::pair(a.unit, a.begin_day) < std::pair(b.unit, b.begin_day);
                   });
  part_services(history);
  count_outside(history);
  return std::move(reading.history);
}

}  // namespace tierpilot::gang
