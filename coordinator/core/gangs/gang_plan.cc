#include "coordinator/core/gangs/gang_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "coordinator/core/gangs/checkpoint_choice.h"
#include "coordinator/core/gangs/gang_capacity.h"
#include "coordinator/core/gangs/gang_view.h"

namespace tierpilot {
namespace {

// The place of a rank that has these units of the engine.
PlacedRank place_on(const GangView::Node& node, const std::vector<uint32_t>& own,
                    const TaskSpec& spec) {
  const auto& facts = node.record->facts;
  PlacedRank rank{facts.name, {}};
  RankPlace& place = rank.place;
  if (spec.gang.gpus_per_rank > 0)
    for (const uint32_t number : own) place.gpus.push_back(facts.gpus[number]);
  else
    place.cpu_units = own;
  // Others may be on those that are best for it: then any does.
  const std::set<uint32_t> best(place.cpu_units.begin(), place.cpu_units.end());
  for (const uint32_t number : node.cpu_units)
    if (!best.contains(number)) place.cpu_units.push_back(number);
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
    ranks += ranks_within(node->idle_resources(), task.spec, facts);
  }
  return ranks;
}

uint32_t ranks_on(const GangView::Node& node, const TaskSpec& spec) {
  return ranks_within(node.room, spec, node.record->facts);
}

uint64_t room_now(const GangView& view, const TaskSpec& spec) {
  uint64_t ranks = 0;
  for (const auto& node : view.nodes) ranks += ranks_on(node, spec);
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
  const auto capacity = present_capacity(state, spec);
  const auto& gang = spec.gang;
  GangPlan none;
  none.could_fit = capacity.holds && ranks_now < capacity.ranks;
  if (capacity.holds)
    none.reason = fmt::format("waiting for room for {} ranks at once: there is room for {} now",
                              gang.ranks, ranks_now);
  else if (capacity.ranks >= gang.ranks)
    none.reason =
        fmt::format("waiting for nodes: no set of those that take tasks can have {} ranks with {}",
                    gang.ranks, bounds_text(gang));
  else
    none.reason = fmt::format(
                      "waiting for nodes: it has {} ranks, and those that are up and take tasks "
                      "could run {} if they had nothing else to do",
                      gang.ranks, capacity.ranks) +
                  too_old(state.registry);
  return none;
}

GangPlan plan_of(const Task& task, const GangView& view, const gang::RankPlaces& chosen) {
  GangPlan plan;
  std::map<uint32_t, uint32_t> ranks;  // by node
  for (const auto& units : chosen.units) {
    const uint32_t node = view.state.node_of(units.front());
    std::vector<uint32_t> own;
    for (const uint32_t unit : units) own.push_back(view.numbers[unit]);
    plan.ranks.push_back(place_on(view.nodes[node], own, task.spec));
    ++ranks[node];
  }
  number_locally(plan.ranks);
  size_t with_room = 0;
  for (uint32_t i = 0; i < view.nodes.size(); ++i) {
    const auto& node = *view.nodes[i].record;
    if (!node.takes(task.id)) continue;
    const bool has_room = ranks_on(view.nodes[i], task.spec) > 0;
    plan.nodes.push_back({node.facts.name,
                          has_room,
                          {},
                          node.fast_free_bytes,
                          0,
                          0,
                          node.assigned_units,
                          node.facts.units,
                          ranks[i]});
    with_room += has_room;
  }
  plan.reason = fmt::format("{} ({} nodes have room)", chosen.reason, with_room);
  return plan;
}

// "a x2, b": ranks on each node.
std::string nodes_text(const GangView& view, const gang::RankPlaces& places) {
  std::map<std::string, size_t> ranks;
  for (const auto& units : places.units)
    ++ranks[view.nodes[view.state.node_of(units.front())].record->facts.name];
  std::string text;
  for (const auto& [node, count] : ranks)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", node,
                        count > 1 ? fmt::format(" x{}", count) : "");
  return text;
}

}  // namespace

uint64_t idle_ranks(const ClusterState& state, const Task& gang) {
  std::map<std::string, uint32_t> own;
  for (const uint64_t id : state.tasks.ranks_tried(gang)) ++own[state.tasks.find(id)->node];
  const uint32_t most = gang.spec.gang.ranks_per_node_max;
  uint64_t ranks = 0;
  for (const auto& node : gang_view(state, gang, {}).nodes) {
    const uint32_t room = ranks_on(node, gang.spec);
    ranks += most > 0 ? std::min(room, most - std::min(most, own[node.record->facts.name])) : room;
  }
  return ranks;
}

GangPlan plan_gang(const ClusterState& state, GangPolicies& policies, const Task& task) {
  const auto& spec = task.spec;
  if (const uint64_t most = room_at_most(state.registry, task); most < spec.gang.ranks)
    return no_room(state, spec, most);
  const int64_t begin_ns = state.clock.boot_ns();
  auto view = gang_view(state, task, newest_checkpoint(state, task.id));
  const uint64_t room = room_now(view, spec);
  if (room < spec.gang.ranks) return no_room(state, spec, room);
  // What it had is known from the disk, what it is to have only since the coordinator started.
  const auto wanted = state.gangs.wanted(task.id);
  const uint64_t ranks = wanted.ranks > 0 ? wanted.ranks : state.tasks.ranks_tried(task).size();
  view.shape.ranks = static_cast<uint32_t>(std::clamp<uint64_t>(
      ranks, spec.gang.ranks, std::min<uint64_t>(room, spec.gang.most_ranks())));
  auto choice = policies.choose(view, task.id + task.attempt);
  // Bounds on the ranks of a node may fit fewer only.
  while (!choice && view.shape.ranks > spec.gang.ranks) {
    --view.shape.ranks;
    choice = policies.choose(view, task.id + task.attempt);
  }
  if (!choice) {
    auto none = no_room(state, spec, room);
    none.reason = "waiting: " + choice.error().message;
    return none;
  }
  auto plan = plan_of(task, view, choice->places);
  if (plan.ranks.size() > spec.gang.ranks)
    plan.reason += fmt::format(", {} ranks: {}", plan.ranks.size(),
                               wanted.why.empty() ? "as many as it had" : wanted.why);
  plan.beside = {.expected_h = choice->places.expected_h,
                 .heuristic = nodes_text(view, choice->heuristic),
                 .heuristic_h = choice->heuristic.expected_h,
                 .standing = {}};
  if (const auto* guard = policies.oversight().guard(choice->turn.policy)) {
    const auto& memory = guard->memory();
    plan.beside.standing = standing_name(memory.standing);
    if (!memory.why.empty()) plan.beside.standing += ": " + memory.why;
  }
  if (choice->proposed) plan.proposed = nodes_text(view, *choice->proposed);
  plan.fallback = std::move(choice->fallback);
  plan.turn = std::move(choice->turn);
  plan.decide_ns = state.clock.boot_ns() - begin_ns;
  return plan;
}

}  // namespace tierpilot
