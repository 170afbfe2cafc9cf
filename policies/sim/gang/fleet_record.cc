#include "policies/sim/gang/fleet_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policies/gang/rates/history_tables.h"
#include "policies/gang/rates/rate_choice.h"

namespace tierpilot::gang {
namespace {

constexpr uint32_t kUsualNodes = 400;
constexpr double kDayH = 24;
constexpr double kMostRates = 1000;  // of a long record: then not after each fault

double until_of(const HistoryRow& row, bool has_repairs, double end_day, double repair_h) {
  if (!std::isnan(row.end_day)) return row.end_day;
  return has_repairs ? end_day : row.begin_day + repair_h / kDayH;
}

FleetRecord record_of(const HistoryTable& table, double repair_h, Names& nodes) {
  FleetRecord record{.begin_day = INFINITY, .end_day = -INFINITY};
  for (const auto& row : table.rows)
    for (const double day : {row.begin_day, row.end_day})
      if (!std::isnan(day)) {
        record.begin_day = std::min(record.begin_day, day);
        record.end_day = std::max(record.end_day, day);
      }
  for (const auto& row : table.rows) {
    const uint32_t node = nodes.number(row.node.empty() ? row.unit : row.node);
    if (std::isnan(row.begin_day)) continue;
    record.faults.push_back(
        {row.begin_day, until_of(row, table.has_repairs, record.end_day, repair_h), node});
  }
  std::stable_sort(record.faults.begin(), record.faults.end(),
                   [](const auto& a, const auto& b) { return a.from_day < b.from_day; });
  record.split_day = (record.begin_day + record.end_day) / 2;
  return record;
}

Status check(const FleetRecord& record, size_t named, const std::filesystem::path& file) {
  const auto before =
      std::count_if(record.faults.begin(), record.faults.end(),
                    [&](const auto& fault) { return fault.from_day < record.split_day; });
  const auto after = static_cast<ptrdiff_t>(record.faults.size()) - before;
  if (before == 0 || after == 0)
    return fail(ErrorCode::kInvalid,
                fmt::format("record '{}': {} faults in the first half of its time and {} in the "
                            "second; a replay needs some in both",
                            file.string(), before, after));
  if (record.nodes < named)
    return fail(ErrorCode::kInvalid,
                fmt::format("record '{}' names {} nodes, but there are said to be {}",
                            file.string(), named, record.nodes));
  if (record.nodes > kMaxRecordNodes)
    return fail(ErrorCode::kInvalid,
                fmt::format("record '{}' has {} nodes; at most {} are replayed", file.string(),
                            record.nodes, kMaxRecordNodes));
  return {};
}

// Of nodes that are under repair on that day what was known before holds.
NodeRates rates_at(const FailureHistory& history, const RateChoice& choice, double day,
                   const NodeRates& before, const FleetRecord& record) {
  NodeRates rates = before;
  rates.day = day;
  for (const auto& rate :
       fleet_rates(history, choice, day, record.end_day - record.split_day).rates) {
    rates.per_day[rate.unit] = rate.per_day;
    rates.shape[rate.unit] = 1 / (1 / rate.shape + choice.spread);
  }
  return rates;
}

// The way to look at the record is chosen by its first half alone.
void set_rates(FleetRecord& record) {
  const auto history = history_of(record);
  const auto choice = choose_rates(history, record.split_day);
  NodeRates rates;
  double failures = 0;
  for (const auto& fault : record.faults) failures += fault.from_day < record.split_day ? 1 : 0;
  const double days = (record.split_day - record.begin_day) * record.nodes;
  rates.per_day.assign(record.nodes, failures / days);
  rates.shape.assign(record.nodes, 1);
  rates = rates_at(history, choice, record.split_day, rates, record);
  record.rates.push_back(rates);
  const double least_days = (record.end_day - record.split_day) / kMostRates;
  for (const auto& fault : record.faults) {
    const double day = std::nextafter(fault.from_day, INFINITY);
    if (day <= record.rates.back().day + least_days) continue;
    auto now = rates_at(history, choice, day, record.rates.back(), record);
    now.day = fault.from_day;  // those who are there when it happens know it
    record.rates.push_back(std::move(now));
  }
}

}  // namespace

FailureHistory history_of(const FleetRecord& record) {
  FailureHistory history;
  history.kinds = {""};
  history.begin_day = record.begin_day;
  history.end_day = record.end_day;
  history.whole_fleet = true;
  std::vector<double> since(record.nodes, record.begin_day);
  for (const auto& fault : record.faults) {
    history.failures.push_back({fault.from_day, fault.node, 0});
    if (fault.from_day > since[fault.node])
      history.services.push_back({fault.node, since[fault.node], fault.from_day, {}});
    since[fault.node] = std::max(since[fault.node], fault.until_day);
  }
  for (uint32_t node = 0; node < record.nodes; ++node) {
    history.units.push_back(fmt::format("{}", node));
    if (since[node] < record.end_day)
      history.services.push_back({node, since[node], record.end_day, {}});
  }
  std::stable_sort(history.services.begin(), history.services.end(),
                   [](const Service& a, const Service& b) {
                     return std::pair(a.unit, a.begin_day) < std::pair(b.unit, b.begin_day);
                   });
  return history;
}

Result<FleetRecord> read_fleet_record(const std::filesystem::path& file,
                                      std::optional<uint32_t> nodes, double repair_h) {
  const auto table = read_failures(file);
  if (!table) return tl::unexpected(table.error());
  Names names;
  auto record = record_of(*table, repair_h, names);
  const auto named = static_cast<uint32_t>(names.names().size());
  record.nodes = nodes.value_or(std::max(named, kUsualNodes));
  if (auto good = check(record, named, file); !good) return tl::unexpected(good.error());
  set_rates(record);
  return record;
}

}  // namespace tierpilot::gang
