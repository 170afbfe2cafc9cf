#include "policies/gang/learned/ac_features.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tierpilot::gang {
namespace {

constexpr double kLeastPerH = 1e-9;

struct RawHistory {
  double failures = 0;
  double recent = 0;   // in the last two weeks
  double since_h = 0;  // the last one
};

RawHistory history_of(const PlacementState& state, uint32_t unit) {
  constexpr double kRecent_h = 14 * 24;
  constexpr double kNever_h = 365 * 24;
  if (state.failed_h.empty() || state.failed_h[unit].empty()) return {.since_h = kNever_h};
  const auto& times = state.failed_h[unit];
  const auto recent =
      times.end() - std::upper_bound(times.begin(), times.end(), state.now_h - kRecent_h);
  return {static_cast<double>(times.size()), static_cast<double>(recent),
          std::min(state.now_h - times.back(), kNever_h)};
}

// The same without a rate of each unit: all have the fleet's, but for a trifle that puts them in
// the order of their failures so far, by which candidates are made.
PlacementState without_rates(const PlacementState& state) {
  constexpr double kTrifle = 1e-6;
  PlacementState view = state;
  const double mean = std::accumulate(state.per_h.begin(), state.per_h.end(), 0.0) /
                      static_cast<double>(state.per_h.size());
  for (uint32_t unit = 0; unit < view.per_h.size(); ++unit)
    view.per_h[unit] = mean * (1 + kTrifle * history_of(state, unit).failures);
  view.rate_shape.clear();
  return view;
}

// What is alike for all candidates.
struct Surroundings {
  const PlacementState& state;
  const Job& job;
  double mean_per_h = 0;           // of all units
  std::vector<double> free_rates;  // sorted
  std::vector<uint32_t> free_of_node, units_of_node;
  double free = 0;
  double least_h = 0;  // of all candidates
  double least_fetch_h = 0;

  double units() const { return static_cast<double>(state.free.size()); }
};

Surroundings surroundings_of(const PlacementState& state, const Job& job) {
  Surroundings scene{
      .state = state, .job = job, .free_rates = {}, .free_of_node = {}, .units_of_node = {}};
  const uint32_t nodes = *std::max_element(state.node.begin(), state.node.end()) + 1;
  scene.free_of_node.resize(nodes);
  scene.units_of_node.resize(nodes);
  double sum = 0;
  for (uint32_t unit = 0; unit < state.free.size(); ++unit) {
    sum += state.per_h[unit];
    ++scene.units_of_node[state.node_of(unit)];
    if (!state.free[unit]) continue;
    ++scene.free_of_node[state.node_of(unit)];
    scene.free_rates.push_back(state.per_h[unit]);
  }
  std::sort(scene.free_rates.begin(), scene.free_rates.end());
  scene.mean_per_h = std::max(sum / scene.units(), kLeastPerH);
  scene.free = static_cast<double>(scene.free_rates.size());
  scene.least_fetch_h = least_fetch_hours(state, job.units);
  return scene;
}

// What is no number, of times without end or none at all, says nothing.
float bounded(double value, double most = 3) {
  return std::isnan(value) ? 0 : static_cast<float>(std::clamp(value, -most, most));
}

// Of the candidate, for each of its units.
UnitFeatures common_features(const Surroundings& scene, const AcCandidate& candidate,
                             double nodes) {
  const auto& [state, job] = std::tie(scene.state, scene.job);
  const double per_h =
      std::accumulate(candidate.units.begin(), candidate.units.end(), 0.0,
                      [&](double sum, uint32_t unit) { return sum + state.per_h[unit]; });
  const double interval_h = checkpoint_interval_h(state.costs, per_h);
  const double least_nodes = std::ceil(1.0 * job.units / state.units_per_node);
  UnitFeatures f{};
  f[6] = bounded(std::log2(job.units) / 6);
  f[7] = bounded(std::log(std::max(job.work_h, 1e-3)) / 4);
  f[8] = bounded(1 - scene.free / scene.units());
  f[9] = bounded((scene.free - job.units) / scene.units());
  f[10] = bounded(10 * std::log(candidate.hours / scene.least_h));
  f[11] = bounded((nodes - least_nodes) / least_nodes);
  f[12] = bounded(per_h * job.work_h);
  f[13] = bounded(std::log(interval_h / std::max(job.work_h, 1e-3)) / 3);
  f[14] = bounded(std::log1p(job.units * (state.costs.restart_h + interval_h / 2)) / 3);
  f[15] = bounded(std::log1p(state.waiting_units / scene.units()));
  f[16] = bounded(std::log1p(state.costs.repair_h) / 4);
  return f;
}

// In place of what says the same of rates.
void see_history(const RawHistory& history, UnitFeatures& f) {
  f[0] = bounded(std::log1p(history.failures));
  f[1] = bounded(std::log1p(history.recent));
  f[17] = bounded(std::log1p(history.since_h) / 9);
}

void see(const Surroundings& scene, AcView view, AcCandidate& candidate) {
  const auto& state = scene.state;
  std::vector<uint32_t> nodes;
  for (const uint32_t unit : candidate.units) nodes.push_back(state.node_of(unit));
  const double distinct =
      static_cast<double>(1 + std::inner_product(nodes.begin() + 1, nodes.end(), nodes.begin(), 0,
                                                 std::plus<>(), std::not_equal_to<>()));
  const UnitFeatures common = common_features(scene, candidate, distinct);
  const double work_h = std::max(scene.job.work_h, 1e-3);
  for (const uint32_t unit : candidate.units) {
    const uint32_t node = state.node_of(unit);
    const auto [low, high] = std::equal_range(nodes.begin(), nodes.end(), node);
    const double mine = static_cast<double>(high - low);
    const double all = scene.units_of_node[node];
    const double free = scene.free_of_node[node];
    const double rate = state.per_h[unit];
    const auto sounder = std::lower_bound(scene.free_rates.begin(), scene.free_rates.end(), rate);
    UnitFeatures f = common;
    f[0] = bounded(std::log(std::max(rate, kLeastPerH) / scene.mean_per_h) / 2);
    f[1] = state.rate_shape.empty() ? 1 : bounded(1 / std::sqrt(state.rate_shape[unit]));
    f[2] = bounded(mine / free);
    f[3] = bounded((free - mine) / all);
    f[4] = free == all ? 1 : 0;
    f[5] = bounded(mine / all);
    f[17] = bounded(static_cast<double>(sounder - scene.free_rates.begin()) / scene.free);
    if (!state.fetch_h.empty())
      f[18] =
          bounded(3 * std::log((work_h + state.fetch_h[unit]) / (work_h + scene.least_fetch_h)));
    if (view == AcView::kHistories) see_history(history_of(state, unit), f);
    candidate.seen.push_back(f);
  }
}

StateFeatures state_features(const Surroundings& scene) {
  const auto& [state, job] = std::tie(scene.state, scene.job);
  const auto rate_at = [&](double share) {
    const auto at = static_cast<size_t>(share * (scene.free - 1));
    return bounded(std::log(std::max(scene.free_rates[at], kLeastPerH) / scene.mean_per_h) / 2);
  };
  return {bounded(std::log2(job.units) / 6),
          bounded(std::log(std::max(job.work_h, 1e-3)) / 4),
          bounded(1 - scene.free / scene.units()),
          bounded(std::log1p(state.waiting_units / scene.units())),
          bounded(std::log(scene.mean_per_h * scene.units()) / 3),
          rate_at(0),
          rate_at(0.5),
          rate_at(1),
          bounded(std::log2(scene.units()) / 10),
          bounded(std::log1p(state.costs.repair_h) / 4),
          bounded(std::log1p(scene.least_fetch_h / std::max(job.work_h, 1e-3)))};
}

AcInput input_of(const PlacementState& state, const Job& job, AcView view) {
  AcInput input;
  Surroundings scene = surroundings_of(state, job);
  auto candidates = many_candidates(state, job.units);
  for (auto& units : candidates) {
    std::sort(units.begin(), units.end());
    if (std::any_of(input.candidates.begin(), input.candidates.end(),
                    [&](const auto& other) { return other.units == units; }))
      continue;
    const double hours = expected_hours(state, job, job.work_h, units);
    input.candidates.push_back({std::move(units), hours, {}});
    if (hours < input.candidates[input.heuristic].hours)
      input.heuristic = input.candidates.size() - 1;
  }
  scene.least_h = input.candidates[input.heuristic].hours;
  for (auto& candidate : input.candidates) see(scene, view, candidate);
  input.state = state_features(scene);
  return input;
}

}  // namespace

AcInput ac_input(const PlacementState& state, const Job& job, AcView view) {
  return view == AcView::kRates ? input_of(state, job, view)
                                : input_of(without_rates(state), job, view);
}

}  // namespace tierpilot::gang
