#include <algorithm>
#include <cmath>
#include <numeric>

#include "policies/sim/gang/fleet_record.h"

namespace tierpilot::gang {
namespace {

constexpr uint32_t kUnitsPerNode = 8;
constexpr double kHoursOfDay = 24;
constexpr double kChunkDays = 7;
constexpr double kMaxChunks = 1000;

// Records name the nodes that failed and in the order in which they did: as they come, the first
// nodes would be the worst.
std::vector<uint32_t> any_order(uint32_t nodes, uint64_t seed) {
  std::vector<uint32_t> order(nodes);
  std::iota(order.begin(), order.end(), 0U);
  SeededRandom random(derived_seed(seed, "gang record nodes"));
  for (uint32_t i = nodes; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

// Of each unit: what its node's are. `number`: in the scene, of each node of the record.
void add_faults(const FleetRecord& record, double from_day, const std::vector<uint32_t>& number,
                GangScene& scene) {
  auto& failures = scene.failures;
  failures.times_h.resize(scene.units);
  failures.past_times_h.resize(scene.units);
  failures.past.resize(scene.units);
  for (const auto& fault : record.faults) {
    const double from_h = (fault.from_day - from_day) * kHoursOfDay;
    const double until_h = (fault.until_day - from_day) * kHoursOfDay;
    if (until_h >= 0) scene.outages.push_back({from_h, until_h, number[fault.node]});
    for (uint32_t i = 0; i < kUnitsPerNode; ++i) {
      const uint32_t unit = number[fault.node] * kUnitsPerNode + i;
      (from_h > 0 ? failures.times_h : failures.past_times_h)[unit].push_back(from_h);
      failures.past[unit] += from_h > 0 ? 0 : 1;
    }
  }
  failures.past_h = std::max((from_day - record.begin_day) * kHoursOfDay, 1.0);
}

std::shared_ptr<const std::vector<ToldRates>> told_from(const FleetRecord& record, double from_day,
                                                        double until_day,
                                                        const std::vector<uint32_t>& number) {
  auto told = std::make_shared<std::vector<ToldRates>>();
  for (size_t i = 0; i < record.rates.size(); ++i) {
    const auto& rates = record.rates[i];
    const bool is_last = i + 1 == record.rates.size();
    if ((!is_last && record.rates[i + 1].day <= from_day) || rates.day > until_day) continue;
    auto& to = told->emplace_back();
    to.from_h = (rates.day - from_day) * kHoursOfDay;
    to.per_h.resize(record.nodes);
    to.shape.resize(record.nodes);
    for (uint32_t node = 0; node < record.nodes; ++node) {
      to.per_h[number[node]] = rates.per_day[node] / kHoursOfDay / kUnitsPerNode;
      to.shape[number[node]] = rates.shape[node];
    }
  }
  return told;
}

GangScene replayed(const GangSuite& suite, const FleetRecord& record, const GangCell& cell,
                   uint64_t seed) {
  constexpr double kLongestDays = 30;  // of a workload; later rates are not waited for
  GangScene scene{.jobs = jobs_of(suite, cell, seed),
                  .units = cell.units,
                  .units_per_node = cell.units_per_node,
                  .costs = suite.costs,
                  .failures = {}};
  const double from_day = cell.from_day.value_or(record.split_day);
  const auto number = any_order(record.nodes, seed);
  add_faults(record, from_day, number, scene);
  scene.told = told_from(record, from_day, from_day + kLongestDays, number);
  return scene;
}

}  // namespace

GangSuite replay_suite(std::shared_ptr<const FleetRecord> record, GangSuite suite) {
  const double half_days = record->end_day - record->split_day;
  const int chunks = static_cast<int>(std::clamp(half_days / kChunkDays, 1.0, kMaxChunks));
  double faults = 0;
  for (const auto& fault : record->faults) faults += fault.from_day >= record->split_day ? 1 : 0;
  GangCell cell{.units = record->nodes * kUnitsPerNode,
                .units_per_node = kUnitsPerNode,
                .mean_per_h = faults / (half_days * kHoursOfDay * record->nodes * kUnitsPerNode),
                .from_trace = !suite.trace.empty()};
  suite.cells.clear();
  for (const bool large : {false, true})
    for (int chunk = 0; chunk < chunks && !(large && cell.from_trace); ++chunk) {
      cell.large_jobs = large;
      cell.from_day = record->split_day + half_days * chunk / chunks;
      suite.cells.push_back(cell);
    }
  // Without a copy of the suite's own function in it.
  const GangSuite jobs = suite;
  suite.make_scene = [jobs, record](const GangCell& of, uint64_t seed) {
    return replayed(jobs, *record, of, seed);
  };
  return suite;
}

}  // namespace tierpilot::gang
