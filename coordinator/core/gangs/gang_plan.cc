#include "coordinator/core/gangs/gang_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "policies/gang/placement/placer.h"

namespace tierpilot {
namespace {

constexpr double kMsOfHour = 3'600e3;

struct RatedUnit {
  double per_h = 0;
  uint32_t number = 0;  // of the node's compute units, or of its GPUs
};
using RatedUnits = std::vector<RatedUnit>;  // the soundest first

// What one node has for ranks now. Ranks are given out by chunks: the fewest that a node may get.
struct Offer {
  const NodeRecord* node = nullptr;
  RatedUnits cpu_units, gpus;
  uint32_t chunks = 0;
};

uint32_t chunk_of(const GangSpec& gang) {
  return std::max(gang.ranks_per_node_min, 1u);
}

uint32_t limited(uint64_t ranks, const TaskSpec& spec, const NodeFacts& facts) {
  if (spec.memory_bytes > 0) ranks = std::min(ranks, facts.memory_bytes / spec.memory_bytes);
  if (spec.gang.ranks_per_node_max > 0)
    ranks = std::min<uint64_t>(ranks, spec.gang.ranks_per_node_max);
  ranks = std::min<uint64_t>(ranks, spec.gang.ranks);
  return static_cast<uint32_t>(ranks / chunk_of(spec.gang) * chunk_of(spec.gang));
}

// With nothing else on it.
uint32_t capacity_of(const NodeFacts& facts, const TaskSpec& spec) {
  uint64_t ranks = facts.units / spec.units;
  if (spec.gang.gpus_per_rank > 0)
    ranks = std::min<uint64_t>(ranks, facts.gpus.size() / spec.gang.gpus_per_rank);
  return limited(ranks, spec, facts);
}

class Rates {
 public:
  Rates(const UnitBook& units, int64_t now_ms) : units_(units), rates_(units.rates(now_ms)) {}
  bool is_usable(const std::string& unit) const {
    return units_.drained_because(unit).empty() && units_.user_of(unit) == 0;
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
  const uint32_t idle = facts.units - std::min(facts.units, node.assigned_units);
  uint64_t ranks = std::min<uint64_t>(idle, offer.cpu_units.size()) / spec.units;
  if (spec.gang.gpus_per_rank > 0) {
    offer.gpus = usable(rates, static_cast<uint32_t>(facts.gpus.size()),
                        [&](uint32_t n) { return gpu_unit_id(facts.name, facts.gpus[n]); });
    ranks = std::min<uint64_t>(ranks, offer.gpus.size() / spec.gang.gpus_per_rank);
  }
  offer.chunks = limited(ranks, spec, facts) / chunk_of(spec.gang);
  return offer;
}

// A chunk is to the placer what a unit is in the simulation; of a node's chunks the first have the
// soundest units.
gang::PlacementState state_of(const std::vector<Offer>& offers, const TaskSpec& spec) {
  gang::PlacementState view;
  view.units_per_node = 1;
  for (uint32_t n = 0; n < offers.size(); ++n) {
    const auto& units = spec.gang.gpus_per_rank > 0 ? offers[n].gpus : offers[n].cpu_units;
    const size_t each =
        (spec.gang.gpus_per_rank > 0 ? spec.gang.gpus_per_rank : spec.units) * chunk_of(spec.gang);
    view.units_per_node = std::max(view.units_per_node, offers[n].chunks);
    for (uint32_t chunk = 0; chunk < offers[n].chunks; ++chunk) {
      double per_h = 0;
      for (size_t i = 0; i < each; ++i) per_h += units[chunk * each + i].per_h;
      view.node.push_back(n);
      view.free.push_back(true);
      view.per_h.push_back(per_h);
    }
  }
  return view;
}

// The ranks of one node, whose soundest units they get.
void place_on(const Offer& offer, uint32_t count, uint32_t node_rank, const TaskSpec& spec,
              std::vector<RankPlace>& ranks) {
  const uint32_t gpus = spec.gang.gpus_per_rank;
  for (uint32_t local = 0; local < count; ++local) {
    RankPlace place{offer.node->facts.name, local, count, node_rank, {}, {}};
    // Others may be on the one that is best for it: then any does.
    for (size_t i = 0; i < offer.cpu_units.size(); ++i)
      place.cpu_units.push_back(
          offer.cpu_units[(i + size_t{local} * spec.units) % offer.cpu_units.size()].number);
    for (uint32_t i = 0; i < gpus; ++i)
      place.gpus.push_back(offer.node->facts.gpus[offer.gpus[local * gpus + i].number]);
    ranks.push_back(std::move(place));
  }
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
                          spec.gang.ranks, most);
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
  const uint64_t data_bytes = state.catalog.data_bytes(spec);
  const Rates rates(state.units, state.clock.wall_ms());
  std::vector<Offer> offers;
  uint64_t chunks = 0;
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
    if (offer.chunks == 0) continue;
    chunks += offer.chunks;
    offers.push_back(std::move(offer));
  }
  const uint32_t wanted = spec.gang.ranks / chunk_of(spec.gang);
  if (chunks < wanted) return no_room(state, spec, chunks * chunk_of(spec.gang));
  auto placer = gang::make_placer(state.settings.gang_policy, task.id + task.attempt);
  if (!placer) return {{}, placer.error().message, false, {}};
  const auto view = state_of(offers, spec);
  const double hours = static_cast<double>(spec.gang.estimate_ms) / kMsOfHour;
  const auto chosen = (*placer)->place(
      view, {.units = wanted, .work_h = hours > 0 ? hours : state.settings.gang_estimate_h});
  std::map<uint32_t, uint32_t> of_node;  // chunks
  double per_h = 0;
  for (const uint32_t chunk : chosen) {
    ++of_node[view.node[chunk]];
    per_h += view.per_h[chunk];
  }
  uint32_t node_rank = 0;
  for (const auto& [n, count] : of_node) {
    place_on(offers[n], count * chunk_of(spec.gang), node_rank++, spec, plan.ranks);
    for (auto& looked_at : plan.nodes)
      if (looked_at.node == offers[n].node->facts.name) looked_at.eligible = true;
  }
  plan.reason = fmt::format(
      "{} ranks on {} of {} nodes with room; {:.2g} failures/h expected of "
      "their units",
      plan.ranks.size(), of_node.size(), offers.size(), per_h);
  return plan;
}

}  // namespace tierpilot
