#include "coordinator/core/gangs/gang_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "policies/gang/learned/hosted_placers.h"
#include "policies/gang/placement/rank_slots.h"

namespace tierpilot {
namespace {

constexpr double kMsOfHour = 3'600e3;

struct RatedUnit {
  double per_h = 0;
  uint32_t number = 0;  // of the node's compute units, or of its GPUs
};
using RatedUnits = std::vector<RatedUnit>;  // the soundest first

// What one node has for ranks now.
struct Offer {
  const NodeRecord* node = nullptr;
  RatedUnits cpu_units, gpus;
  uint32_t ranks = 0;
};

uint32_t units_per_rank(const TaskSpec& spec) {
  return spec.gang.gpus_per_rank > 0 ? spec.gang.gpus_per_rank : spec.units;
}

uint32_t limited(uint64_t ranks, const TaskSpec& spec, const NodeFacts& facts) {
  if (!facts.runs_gangs) return 0;
  if (spec.gang.ranks_per_node_max > 0)
    ranks = std::min<uint64_t>(ranks, spec.gang.ranks_per_node_max);
  if (ranks < spec.gang.ranks_per_node_min) return 0;
  return static_cast<uint32_t>(std::min<uint64_t>(ranks, spec.gang.ranks));
}

// With nothing else on it.
uint32_t capacity_of(const NodeFacts& facts, const TaskSpec& spec) {
  return limited(facts.resources().times(spec.needs(0)), spec, facts);
}

class Rates {
 public:
  Rates(const UnitBook& units, int64_t now_ms) : units_(units), rates_(units.rates(now_ms)) {}
  bool is_usable(const std::string& unit) const {
    return units_.drained_because(unit).empty() && units_.unhealthy_because(unit).empty() &&
           units_.user_of(unit) == 0;
  }
  double per_h(const std::string& unit) const {
    const auto rate = rates_.find(unit);
    return rate == rates_.end() ? 0 : rate->second.mean;
  }

 private:
  const UnitBook& units_;
  const std::map<std::string, UnitFailureRate>& rates_;
};

template <class IdOf>
RatedUnits usable(const Rates& rates, uint32_t count, IdOf id_of) {
  RatedUnits units;
  for (uint32_t number = 0; number < count; ++number)
    if (const auto id = id_of(number); rates.is_usable(id))
      units.push_back({rates.per_h(id), number});
  std::stable_sort(units.begin(), units.end(),
                   [](const auto& a, const auto& b) { return a.per_h < b.per_h; });
  return units;
}

Offer offer_of(const NodeRecord& node, const TaskSpec& spec, const Rates& rates) {
  const auto& facts = node.facts;
  Offer offer{.node = &node, .cpu_units = {}, .gpus = {}};
  offer.cpu_units =
      usable(rates, facts.units, [&](uint32_t n) { return cpu_unit_id(facts.name, n); });
  if (spec.gang.gpus_per_rank > 0)
    offer.gpus = usable(rates, static_cast<uint32_t>(facts.gpus.size()),
                        [&](uint32_t n) { return gpu_unit_id(facts.name, facts.gpus[n]); });
  Resources free = node.idle_resources();
  free.units = std::min(free.units, static_cast<uint32_t>(offer.cpu_units.size()));
  free.gpus = static_cast<uint32_t>(offer.gpus.size());
  offer.ranks = limited(free.times(spec.needs(0)), spec, facts);
  return offer;
}

// Of each node as many units of the engine as its ranks may have, the soundest.
gang::PlacementState state_of(const std::vector<Offer>& offers, const TaskSpec& spec) {
  gang::PlacementState view;
  view.units_per_node = 1;
  for (uint32_t n = 0; n < offers.size(); ++n) {
    const auto& units = spec.gang.gpus_per_rank > 0 ? offers[n].gpus : offers[n].cpu_units;
    const uint32_t count = offers[n].ranks * units_per_rank(spec);
    view.units_per_node = std::max(view.units_per_node, count);
    for (uint32_t i = 0; i < count; ++i) {
      view.node.push_back(n);
      view.free.push_back(true);
      view.per_h.push_back(units[i].per_h);
    }
  }
  return view;
}

// The place of a rank that has these units of the engine.
PlacedRank place_on(const Offer& offer, const RatedUnits& own, const TaskSpec& spec) {
  PlacedRank rank{offer.node->facts.name, {}};
  RankPlace& place = rank.place;
  if (spec.gang.gpus_per_rank > 0)
    for (const auto& unit : own) place.gpus.push_back(offer.node->facts.gpus[unit.number]);
  else
    for (const auto& unit : own) place.cpu_units.push_back(unit.number);
  // Others may be on those that are best for it: then any does.
  for (const auto& unit : offer.cpu_units)
    if (std::find(place.cpu_units.begin(), place.cpu_units.end(), unit.number) ==
        place.cpu_units.end())
      place.cpu_units.push_back(unit.number);
  return rank;
}

// Ranks of a node follow each other.
void number_locally(std::vector<PlacedRank>& ranks) {
  uint32_t node_rank = 0;
  for (size_t begin = 0, end = 0; begin < ranks.size(); begin = end, ++node_rank) {
    while (end < ranks.size() && ranks[end].node == ranks[begin].node) ++end;
    for (size_t i = begin; i < end; ++i) {
      RankPlace& place = ranks[i].place;
      place.local_rank = static_cast<uint32_t>(i - begin);
      place.local_world_size = static_cast<uint32_t>(end - begin);
      place.node_rank = node_rank;
    }
  }
}

// An upper bound, by counts alone: a gang that waits is looked at whenever anything happens.
uint64_t room_at_most(const Registry& registry, const Task& task) {
  uint64_t ranks = 0;
  for (const auto* node : registry.up()) {
    const auto& facts = node->facts;
    if (facts.units <= node->assigned_units || !node->takes(task.id)) continue;
    ranks += limited(node->idle_resources().times(task.spec.needs(0)), task.spec, facts);
  }
  return ranks;
}

std::string too_old(const Registry& registry) {
  const auto up = registry.up();
  const auto count =
      std::count_if(up.begin(), up.end(), [](const auto* node) { return !node->facts.runs_gangs; });
  return count == 0 ? ""
                    : fmt::format(
                          "; {} of them have programs from before there were gangs: update "
                          "those",
                          count);
}

GangPlan no_room(const ClusterState& state, const TaskSpec& spec, uint64_t ranks_now) {
  const uint64_t most = rank_capacity(state.registry, spec, true);
  GangPlan none;
  none.could_fit = most >= spec.gang.ranks;
  none.reason = none.could_fit
                    ? fmt::format("waiting for room for {} ranks at once: there is room for {} now",
                                  spec.gang.ranks, ranks_now)
                    : fmt::format(
                          "waiting for nodes: it has {} ranks, and those that are up could "
                          "run {} if they had nothing else to do",
                          spec.gang.ranks, most) +
                          too_old(state.registry);
  return none;
}

}  // namespace

uint64_t rank_capacity(const Registry& registry, const TaskSpec& spec, bool only_up) {
  uint64_t ranks = 0;
  for (const auto& [name, node] : registry.all())
    if (node.facts.units > 0 && (!only_up || node.can_be_asked()))
      ranks += capacity_of(node.facts, spec);
  return ranks;
}

GangPlan plan_gang(const ClusterState& state, const Task& task) {
  const auto& spec = task.spec;
  if (const uint64_t most = room_at_most(state.registry, task); most < spec.gang.ranks)
    return no_room(state, spec, most);
  const uint64_t data_bytes = state.catalog.data_bytes(spec);
  const Rates rates(state.units, state.clock.wall_ms());
  std::vector<Offer> offers;
  uint64_t room = 0;
  GangPlan plan;
  for (const auto* node : state.registry.up()) {
    if (!node->takes(task.id) || data_bytes > node->facts.fast_budget_bytes) continue;
    auto offer = offer_of(*node, spec, rates);
    plan.nodes.push_back({node->facts.name,
                          false,
                          {},
                          node->fast_free_bytes,
                          0,
                          0,
                          node->assigned_units,
                          node->facts.units});
    if (offer.ranks == 0) continue;
    room += offer.ranks;
    offers.push_back(std::move(offer));
  }
  if (room < spec.gang.ranks) return no_room(state, spec, room);
  auto placer = state.settings.gang_placer;
  if (!placer) {
    auto made = gang::hosted_placers().make(
        state.settings.gang_policy,
        gang::PlacerOrigin{.seed = task.id + task.attempt, .weights = state.settings.gang_weights});
    if (!made) return {{}, made.error().message, false, {}};
    placer = std::move(*made);
  }
  const auto view = state_of(offers, spec);
  const double hours = static_cast<double>(spec.gang.estimate_ms) / kMsOfHour;
  const auto chosen =
      gang::place_ranks(view, {.work_h = hours > 0 ? hours : state.settings.gang_estimate_h},
                        {.ranks = spec.gang.ranks,
                         .units_per_rank = units_per_rank(spec),
                         .ranks_per_node_min = spec.gang.ranks_per_node_min,
                         .ranks_per_node_max = spec.gang.ranks_per_node_max},
                        *placer);
  if (!chosen) {
    auto none = no_room(state, spec, room);
    none.reason = "waiting: " + chosen.error().message;
    return none;
  }
  std::vector<uint32_t> first_of(offers.size(), UINT32_MAX);  // of the units of each node
  for (uint32_t unit = 0; unit < view.node.size(); ++unit)
    first_of[view.node[unit]] = std::min(first_of[view.node[unit]], unit);
  for (const auto& units : chosen->units) {
    const uint32_t n = view.node[units.front()];
    const auto& all = spec.gang.gpus_per_rank > 0 ? offers[n].gpus : offers[n].cpu_units;
    RatedUnits own;
    for (const uint32_t unit : units) own.push_back(all[unit - first_of[n]]);
    plan.ranks.push_back(place_on(offers[n], own, spec));
    for (auto& looked_at : plan.nodes)
      if (looked_at.node == plan.ranks.back().node) looked_at.eligible = true;
  }
  number_locally(plan.ranks);
  plan.reason = fmt::format("{} ({} nodes have room)", chosen->reason, offers.size());
  return plan;
}

}  // namespace tierpilot
