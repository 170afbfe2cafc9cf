#include "policies/gang/placement/rank_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace tierpilot::gang {
namespace {

struct Slots {
  PlacementState state;                      // a slot is a unit of this one
  std::vector<std::vector<uint32_t>> units;  // of each free slot; empty for one that is not
  uint32_t free = 0;
};

// Of the Gamma distribution with the mean and the variance of the sum of the units' rates.
double shape_of_sum(const PlacementState& state, const std::vector<uint32_t>& units) {
  double mean = 0, variance = 0;
  for (const uint32_t unit : units) {
    mean += state.per_h[unit];
    variance += state.per_h[unit] * state.per_h[unit] / state.rate_shape[unit];
  }
  return variance > 0 ? mean * mean / variance : 1;
}

// The soundest units of a node make its first slots, and a node offers no more than may be used.
void add_node(const PlacementState& state, const GangShape& shape, uint32_t first, uint32_t end,
              Slots& slots) {
  std::vector<uint32_t> units(end - first);
  std::iota(units.begin(), units.end(), first);
  std::stable_sort(units.begin(), units.end(), [&](uint32_t a, uint32_t b) {
    if (state.free[a] != state.free[b]) return static_cast<bool>(state.free[a]);
    return state.per_h[a] < state.per_h[b];
  });
  auto ranks = static_cast<uint32_t>(std::count_if(
                   units.begin(), units.end(), [&](uint32_t unit) { return state.free[unit]; })) /
               shape.units_per_rank;
  uint32_t all = (end - first) / shape.units_per_rank;
  // What it may not have is no part of the node to it, rather than taken by others.
  if (shape.ranks_per_node_max > 0) all = std::min(all, shape.ranks_per_node_max);
  ranks = std::min(ranks, all);
  if (ranks < shape.ranks_per_node_min) ranks = 0;
  for (uint32_t slot = 0; slot < all; ++slot) {
    const auto begin = units.begin() + static_cast<std::ptrdiff_t>(slot) * shape.units_per_rank;
    std::vector<uint32_t> mine(begin, begin + shape.units_per_rank);
    slots.state.node.push_back(state.node_of(first));
    slots.state.free.push_back(slot < ranks);
    slots.state.per_h.push_back(
        std::accumulate(mine.begin(), mine.end(), 0.0,
                        [&](double sum, uint32_t unit) { return sum + state.per_h[unit]; }));
    if (!state.rate_shape.empty()) slots.state.rate_shape.push_back(shape_of_sum(state, mine));
    if (!state.fetch_h.empty()) slots.state.fetch_h.push_back(state.fetch_h[first]);
    if (slot >= ranks) mine.clear();
    slots.units.push_back(std::move(mine));
  }
  slots.free += ranks;
}

Slots slots_of(const PlacementState& state, const GangShape& shape) {
  Slots slots;
  slots.state.now_h = state.now_h;
  slots.state.costs = state.costs;
  slots.state.waiting_units = state.waiting_units / shape.units_per_rank;
  slots.state.units_per_node = std::max(state.units_per_node / shape.units_per_rank, 1U);
  if (shape.ranks_per_node_max > 0)
    slots.state.units_per_node = std::min(slots.state.units_per_node, shape.ranks_per_node_max);
  const auto count = static_cast<uint32_t>(state.free.size());
  for (uint32_t first = 0, end = 0; first < count; first = end) {
    while (end < count && state.node_of(end) == state.node_of(first)) ++end;
    add_node(state, shape, first, end, slots);
  }
  return slots;
}

using SlotsOfNode = std::map<uint32_t, std::vector<uint32_t>>;

SlotsOfNode by_node(const Slots& slots, const std::vector<uint32_t>& chosen) {
  SlotsOfNode nodes;
  for (const uint32_t slot : chosen) nodes[slots.state.node_of(slot)].push_back(slot);
  return nodes;
}

// The first of these nodes that can have all ranks between them, each at least its least number.
Result<std::vector<uint32_t>> fill(const std::vector<const std::vector<uint32_t>*>& nodes,
                                   const GangShape& shape) {
  size_t room = 0;
  for (size_t used = 1; used <= nodes.size(); ++used) {
    room += nodes[used - 1]->size();
    if (room < shape.ranks || used * shape.ranks_per_node_min > shape.ranks) continue;
    size_t more = shape.ranks - used * shape.ranks_per_node_min;
    std::vector<uint32_t> chosen;
    for (size_t i = 0; i < used; ++i) {
      const size_t extra = std::min(more, nodes[i]->size() - shape.ranks_per_node_min);
      more -= extra;
      chosen.insert(
          chosen.end(), nodes[i]->begin(),
          nodes[i]->begin() + static_cast<std::ptrdiff_t>(shape.ranks_per_node_min + extra));
    }
    return chosen;
  }
  return fail(ErrorCode::kUnavailable,
              fmt::format("no set of nodes can have {} ranks with at least {} on each", shape.ranks,
                          shape.ranks_per_node_min));
}

// The nodes that the placer used most come first; without luck, those with most room.
Result<std::vector<uint32_t>> with_least(const Slots& slots, const GangShape& shape,
                                         const std::vector<uint32_t>& wanted) {
  std::vector<uint32_t> free;
  for (uint32_t slot = 0; slot < slots.units.size(); ++slot)
    if (slots.state.free[slot]) free.push_back(slot);
  const auto rooms = by_node(slots, free);
  const auto uses = by_node(slots, wanted);
  const auto used = [&](const std::vector<uint32_t>* room) {
    const auto found = uses.find(slots.state.node_of(room->front()));
    return found == uses.end() ? size_t{0} : found->second.size();
  };
  std::vector<const std::vector<uint32_t>*> order;
  for (const auto& [node, room] : rooms) order.push_back(&room);
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return used(a) > used(b); });
  if (auto chosen = fill(order, shape)) return chosen;
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->size() > b->size(); });
  return fill(order, shape);
}

// Empty: these are so many different free slots.
std::string fault_of(const Slots& slots, uint32_t ranks, const std::vector<uint32_t>& chosen) {
  if (chosen.size() != ranks)
    return fmt::format("it chose places for {} ranks, not for {}", chosen.size(), ranks);
  std::set<uint32_t> seen;
  for (const uint32_t slot : chosen) {
    if (slot >= slots.units.size())
      return fmt::format("it chose unit {} of {}", slot, slots.units.size());
    if (!slots.state.free[slot]) return fmt::format("it chose unit {}, which is not free", slot);
    if (!seen.insert(slot).second) return fmt::format("it chose unit {} twice", slot);
  }
  return {};
}

}  // namespace

Result<RankPlaces> place_ranks(const PlacementState& state, const Job& job, const GangShape& shape,
                               Placer& placer) {
  const auto slots = slots_of(state, shape);
  if (slots.free < shape.ranks)
    return fail(ErrorCode::kUnavailable,
                fmt::format("{} ranks of {} units each, and room for {}", shape.ranks,
                            shape.units_per_rank, slots.free));
  Job of_slots = job;
  of_slots.units = shape.ranks;
  auto slot_state = slots.state;
  if (state.next_failure_h)
    slot_state.next_failure_h = [&](uint32_t slot, double after_h) {
      double first_h = std::numeric_limits<double>::infinity();
      for (const uint32_t unit : slots.units[slot])
        first_h = std::min(first_h, state.next_failure_h(unit, after_h));
      return first_h;
    };
  auto chosen = placer.place(slot_state, of_slots);
  if (const auto fault = fault_of(slots, shape.ranks, chosen); !fault.empty())
    return fail(ErrorCode::kInvalid, fault);
  const auto nodes = by_node(slots, chosen);
  if (std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) {
        return node.second.size() < shape.ranks_per_node_min;
      })) {
    auto enough = with_least(slots, shape, chosen);
    if (!enough) return tl::unexpected(enough.error());
    chosen = std::move(*enough);
  }
  RankPlaces places;
  double per_h = 0;
  for (const auto& [node, of_node] : by_node(slots, chosen))
    for (const uint32_t slot : of_node) {
      places.units.push_back(slots.units[slot]);
      per_h += slots.state.per_h[slot];
    }
  places.reason = fmt::format("{} ranks on {} nodes, {:.3g} failures an hour expected", shape.ranks,
                              by_node(slots, chosen).size(), per_h);
  places.expected_h = expected_hours(slot_state, of_slots, of_slots.work_h, chosen);
  return places;
}

}  // namespace tierpilot::gang
