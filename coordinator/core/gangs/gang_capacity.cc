#include "coordinator/core/gangs/gang_capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "coordinator/core/gangs/gang_view.h"
#include "model/unit_id.h"

namespace tierpilot {
namespace {

struct UnitsOut {
  uint32_t units = 0, gpus = 0;
};

uint32_t number_of(std::string_view text) {
  uint32_t number = UINT32_MAX;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Few are, of however many units.
std::map<std::string, UnitsOut> out_of_service(const ClusterState& state) {
  std::map<std::string, UnitsOut> out;
  for (const auto& id : state.units.out_of_service()) {
    const auto unit = parse_unit_id(id);
    const auto* node = unit ? state.registry.find(std::string(unit->node)) : nullptr;
    if (!node) continue;
    const auto& facts = node->facts;
    auto& of_node = out[facts.name];
    if (unit->engine == Engine::kGpu)
      of_node.gpus += std::ranges::find(facts.gpus, unit->unit) != facts.gpus.end();
    else
      of_node.units += number_of(unit->unit) < facts.units;
  }
  return out;
}

GangCapacity capacity_of(std::vector<uint32_t> room, const GangSpec& gang) {
  const auto ranks = std::accumulate(room.begin(), room.end(), uint64_t{0});
  return {ranks, can_spread(std::move(room), gang)};
}

}  // namespace

// Of k nodes, those with the most room can have any number from k times the least to all their
// room.
bool can_spread(std::vector<uint32_t> room, const GangSpec& gang) {
  std::sort(room.begin(), room.end(), std::greater<>());
  const uint64_t least_each = std::max(gang.ranks_per_node_min, 1U);
  uint64_t least = 0, most = 0;
  for (const uint32_t ranks : room) {
    least += least_each;
    if (ranks < least_each || least > gang.most_ranks()) return false;
    most += ranks;
    if (most >= gang.ranks) return true;
  }
  return false;
}

std::string bounds_text(const GangSpec& gang) {
  const auto least = std::max(gang.ranks_per_node_min, 1U);
  return gang.ranks_per_node_max > 0
             ? fmt::format("at least {} and at most {} on each", least, gang.ranks_per_node_max)
             : fmt::format("at least {} on each", least);
}

GangCapacity known_capacity(const Registry& registry, const TaskSpec& spec) {
  std::vector<uint32_t> room;
  for (const auto& [name, node] : registry.all())
    if (node.facts.units > 0)
      room.push_back(ranks_within(node.facts.resources(), spec, node.facts));
  return capacity_of(std::move(room), spec.gang);
}

GangCapacity present_capacity(const ClusterState& state, const TaskSpec& spec) {
  const auto out = out_of_service(state);
  const uint64_t data_bytes = state.catalog.data_bytes(spec);
  std::vector<uint32_t> room;
  for (const auto* node : state.registry.up()) {
    const auto& facts = node->facts;
    if (!node->can_be_asked() || node->is_closed() || data_bytes > facts.fast_budget_bytes)
      continue;
    auto resources = facts.resources();
    if (const auto less = out.find(facts.name); less != out.end()) {
      resources.units -= std::min(resources.units, less->second.units);
      resources.gpus -= std::min(resources.gpus, less->second.gpus);
    }
    room.push_back(ranks_within(resources, spec, facts));
  }
  return capacity_of(std::move(room), spec.gang);
}

}  // namespace tierpilot
