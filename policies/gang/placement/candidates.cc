#include "policies/gang/placement/candidates.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace tierpilot::gang {
namespace {

using Risk = std::function<double(uint32_t)>;

void sort_by(const Risk& risk, Units& units) {
  std::vector<std::pair<double, uint32_t>> keyed;
  keyed.reserve(units.size());
  for (const uint32_t unit : units) keyed.emplace_back(risk(unit), unit);
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < units.size(); ++i) units[i] = keyed[i].second;
}

// So many units of each node, of the soundest nodes that have so many free; only of those with
// exactly `free`, unless it is 0. Empty: there are not enough. `nodes`: units by risk.
Units patterned(const std::vector<Units>& nodes, uint32_t count, uint32_t each, uint32_t free,
                const Risk& risk) {
  std::vector<std::pair<double, const Units*>> order;
  for (const auto& node : nodes) {
    if (node.size() < each || (free > 0 && node.size() != free)) continue;
    const double sum = std::accumulate(node.begin(), node.begin() + each, 0.0,
                                       [&](double all, uint32_t unit) { return all + risk(unit); });
    order.emplace_back(sum, &node);
  }
  if (order.size() * each < count) return {};
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Units chosen;
  for (const auto& [sum, node] : order)
    for (uint32_t i = 0; i < each && chosen.size() < count; ++i) chosen.push_back((*node)[i]);
  return chosen;
}

void add(Units chosen, std::vector<Units>& candidates) {
  if (!chosen.empty()) candidates.push_back(std::move(chosen));
}

std::vector<Units> nodes_by(const PlacementState& state, const Risk& risk) {
  auto nodes = free_by_node(state);
  for (auto& node : nodes) sort_by(risk, node);
  return nodes;
}

void add_by_risk(const PlacementState& state, uint32_t count, const Risk& risk,
                 std::vector<Units>& candidates) {
  const auto nodes = nodes_by(state, risk);
  for (uint32_t each = std::min(count, state.units_per_node); each > 1; --each)
    add(patterned(nodes, count, each, 0, risk), candidates);
}

// Of nodes that are used up by it; of a job that fits on one node also of nodes of which so much is
// left.
void add_by_room(const PlacementState& state, uint32_t count, const Risk& risk,
                 std::vector<Units>& candidates) {
  const auto nodes = nodes_by(state, risk);
  for (uint32_t each = std::min(count, state.units_per_node); each > 1; --each)
    add(patterned(nodes, count, each, each, risk), candidates);
  for (uint32_t free = count; free <= state.units_per_node; ++free)
    add(patterned(nodes, count, count, free, risk), candidates);
}

Units first_by(const PlacementState& state, uint32_t count, const Risk& risk) {
  auto units = free_units(state);
  sort_by(risk, units);
  units.resize(count);
  return units;
}

void add_sound(const PlacementState& state, uint32_t count, const Risk& risk,
               std::vector<Units>& candidates) {
  candidates.push_back(first_by(state, count, risk));
  candidates.push_back(best_fit(state, count));
  add_by_risk(state, count, risk, candidates);
}

// What leaves sound units to others.
void add_thrifty(const PlacementState& state, uint32_t count, std::vector<Units>& candidates) {
  const auto risk = [&](uint32_t unit) { return state.per_h[unit]; };
  const auto soundness = [&](uint32_t unit) { return -state.per_h[unit]; };
  candidates.push_back(first_by(state, count, soundness));
  add_by_room(state, count, risk, candidates);
  add_by_risk(state, count, soundness, candidates);
  add_by_room(state, count, soundness, candidates);
}

// As if only the units were free whose nodes have soonest what the job needs; none: all have it
// equally soon. Has only what candidates are made by.
std::optional<PlacementState> nearest(const PlacementState& state, uint32_t count) {
  const double least_h = least_fetch_hours(state, count);
  bool some_are_far = false;
  PlacementState near;
  near.units_per_node = state.units_per_node;
  near.node = state.node;
  near.free = state.free;
  near.per_h = state.per_h;
  for (uint32_t unit = 0; unit < state.fetch_h.size(); ++unit)
    if (state.free[unit] && state.fetch_h[unit] > least_h) {
      near.free[unit] = false;
      some_are_far = true;
    }
  return some_are_far ? std::optional(std::move(near)) : std::nullopt;
}

}  // namespace

Units free_units(const PlacementState& state) {
  Units units;
  for (uint32_t unit = 0; unit < state.free.size(); ++unit)
    if (state.free[unit]) units.push_back(unit);
  return units;
}

std::vector<Units> free_by_node(const PlacementState& state) {
  std::vector<Units> nodes;
  uint32_t last = UINT32_MAX;
  for (uint32_t unit = 0; unit < state.free.size(); ++unit) {
    if (!state.free[unit]) continue;
    if (state.node_of(unit) != last) nodes.emplace_back();
    last = state.node_of(unit);
    nodes.back().push_back(unit);
  }
  return nodes;
}

Units best_fit(const PlacementState& state, uint32_t count) {
  auto nodes = free_by_node(state);
  Units chosen;
  while (chosen.size() < count) {
    const uint32_t left = count - static_cast<uint32_t>(chosen.size());
    const auto fits = [&](const Units& node) { return node.size() >= left; };
    const auto best =
        std::min_element(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) {
          if (fits(a) != fits(b)) return fits(a);
          return fits(a) ? a.size() < b.size() : a.size() > b.size();
        });
    const auto take = std::min<size_t>(left, best->size());
    chosen.insert(chosen.end(), best->begin(), best->begin() + static_cast<std::ptrdiff_t>(take));
    nodes.erase(best);
  }
  return chosen;
}

double least_fetch_hours(const PlacementState& state, uint32_t count) {
  if (state.fetch_h.empty()) return 0;
  std::vector<double> hours;
  for (const uint32_t unit : free_units(state)) hours.push_back(state.fetch_h[unit]);
  const auto nth = hours.begin() + (count - 1);
  std::nth_element(hours.begin(), nth, hours.end());
  return *nth;
}

std::vector<Units> sound_candidates(const PlacementState& state, uint32_t count, const Risk& risk) {
  std::vector<Units> candidates;
  add_sound(state, count, risk, candidates);
  if (const auto near = nearest(state, count)) add_sound(*near, count, risk, candidates);
  return candidates;
}

std::vector<Units> many_candidates(const PlacementState& state, uint32_t count) {
  const auto risk = [&](uint32_t unit) { return state.per_h[unit]; };
  std::vector<Units> candidates;
  add_sound(state, count, risk, candidates);
  add_thrifty(state, count, candidates);
  if (const auto near = nearest(state, count)) {
    add_sound(*near, count, risk, candidates);
    add_thrifty(*near, count, candidates);
  }
  return candidates;
}

}  // namespace tierpilot::gang
