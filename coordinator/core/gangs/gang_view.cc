#include "coordinator/core/gangs/gang_view.h"

#include <algorithm>
#include <map>

#include "coordinator/core/decisions/view.h"
#include "policies/scheduling/estimate.h"

namespace tierpilot {
namespace {

constexpr double kMsOfHour = 3'600e3;
constexpr double kSecondsOfHour = 3'600;

// Of a node's units of one engine.
struct Unit {
  uint32_t number = 0;
  UnitFailureRate rate;
  bool usable = false;  // nobody has it, and nothing is wrong with it
};

class Units {
 public:
  Units(const ClusterState& state, const NodeFacts& facts, Engine engine)
      : book_(state.units), rates_(book_.rates(state.clock.wall_ms())) {
    const bool gpus = engine == Engine::kGpu;
    const auto count = gpus ? static_cast<uint32_t>(facts.gpus.size()) : facts.units;
    for (uint32_t number = 0; number < count; ++number)
      all.push_back(look_at(number, gpus ? gpu_unit_id(facts.name, facts.gpus[number])
                                         : cpu_unit_id(facts.name, number)));
  }
  // The soundest first.
  std::vector<uint32_t> usable() const {
    std::vector<uint32_t> numbers;
    for (const auto& unit : all)
      if (unit.usable) numbers.push_back(unit.number);
    std::stable_sort(numbers.begin(), numbers.end(), [this](uint32_t a, uint32_t b) {
      return all[a].rate.mean < all[b].rate.mean;
    });
    return numbers;
  }
  std::vector<Unit> all;  // by number

 private:
  Unit look_at(uint32_t number, const std::string& id) const {
    const auto rate = rates_.find(id);
    return {number, rate == rates_.end() ? UnitFailureRate{} : rate->second,
            book_.drained_because(id).empty() && book_.unhealthy_because(id).empty() &&
                book_.user_of(id) == 0};
  }
  const UnitBook& book_;
  const std::map<std::string, UnitFailureRate>& rates_;
};

Engine engine_of(const TaskSpec& spec) {
  return spec.gang.gpus_per_rank > 0 ? Engine::kGpu : Engine::kCpu;
}

uint32_t units_per_rank(const TaskSpec& spec) {
  return spec.gang.gpus_per_rank > 0 ? spec.gang.gpus_per_rank : spec.units;
}

// As many as are idle and have what else its ranks need; who has the others is not known of compute
// units, so that these are the least sound ones.
std::vector<uint32_t> offered(const Units& units, const Resources& room, const TaskSpec& spec) {
  auto offered = units.usable();
  Resources others = room;
  const bool gpus = engine_of(spec) == Engine::kGpu;
  (gpus ? others.gpus : others.units) = UINT32_MAX;
  const uint64_t idle = gpus ? room.gpus : room.units;
  const uint64_t ranks = std::min<uint64_t>(others.times(spec.needs(0)), UINT32_MAX);
  const uint64_t most = std::min({uint64_t{offered.size()}, idle, ranks * units_per_rank(spec)});
  offered.resize(static_cast<size_t>(most));
  return offered;
}

// With what `units` of the gang's engine make of it.
GangView::Node look_at(const ClusterState& state, const Task& gang, const NodeRecord& node,
                       const Units& units) {
  if (!node.takes(gang.id)) return {&node, {}, {}};
  const bool gpus = engine_of(gang.spec) == Engine::kGpu;
  GangView::Node seen{&node, node.idle_resources(),
                      gpus ? Units(state, node.facts, Engine::kCpu).usable() : units.usable()};
  seen.room.units = std::min(seen.room.units, static_cast<uint32_t>(seen.cpu_units.size()));
  if (gpus) seen.room.gpus = static_cast<uint32_t>(units.usable().size());
  return seen;
}

void add_node(const ClusterState& state, const Task& gang, const NodeRecord& node, GangView& view) {
  const Units units(state, node.facts, engine_of(gang.spec));
  auto looked_at = look_at(state, gang, node, units);
  std::vector<bool> free(units.all.size(), false);
  for (const uint32_t number : offered(units, looked_at.room, gang.spec)) free[number] = true;
  auto& seen = view.state;
  for (const auto& unit : units.all) {
    seen.node.push_back(static_cast<uint32_t>(view.nodes.size()));
    seen.free.push_back(free[unit.number]);
    seen.per_h.push_back(unit.rate.mean);
    seen.rate_shape.push_back(unit.rate.shape > 0 ? unit.rate.shape : 1);
    view.numbers.push_back(unit.number);
  }
  seen.units_per_node = std::max(seen.units_per_node, static_cast<uint32_t>(units.all.size()));
  view.nodes.push_back(std::move(looked_at));
}

// That other gangs in the queue want of the same engine.
double waiting_units(const ClusterState& state, const Task& gang) {
  double units = 0;
  for (const uint64_t id : state.tasks.queued_gangs())
    if (const auto& spec = state.tasks.find(id)->spec;
        id != gang.id && engine_of(spec) == engine_of(gang.spec))
      units += static_cast<double>(spec.gang.ranks) * units_per_rank(spec);
  return units;
}

// Of each unit; empty where there is nothing to bring.
std::vector<double> fetch_hours(const ClusterState& state, const Task& gang,
                                const std::string& checkpoint, const GangView& view) {
  TaskSpec wanted = gang.spec;
  if (!checkpoint.empty()) wanted.datasets.push_back({checkpoint, false});
  View nodes;
  nodes.task.data_bytes = state.catalog.data_bytes(wanted);
  if (nodes.task.data_bytes == 0) return {};
  for (const auto& node : view.nodes) nodes.nodes.push_back(seen_of(state, *node.record, wanted));
  const NodeRates typical = typical_rates(nodes);
  std::vector<double> of_node, of_unit;
  for (const auto& node : nodes.nodes)
    of_node.push_back(estimate_finish(nodes.task, node, typical).serve_s / kSecondsOfHour);
  for (const uint32_t node : view.state.node) of_unit.push_back(of_node[node]);
  return of_unit;
}

}  // namespace

uint32_t ranks_within(const Resources& free, const TaskSpec& spec, const NodeFacts& facts) {
  if (!facts.runs_gangs) return 0;
  uint64_t ranks = free.times(spec.needs(0));
  if (spec.gang.ranks_per_node_max > 0)
    ranks = std::min<uint64_t>(ranks, spec.gang.ranks_per_node_max);
  if (ranks < spec.gang.ranks_per_node_min) return 0;
  return static_cast<uint32_t>(std::min<uint64_t>(ranks, spec.gang.most_ranks()));
}

GangView gang_view(const ClusterState& state, const Task& gang, const std::string& checkpoint) {
  const auto& spec = gang.spec;
  GangView view;
  view.state.units_per_node = 1;
  const uint64_t data_bytes = state.catalog.data_bytes(spec);
  for (const auto* node : state.registry.up())
    if (data_bytes <= node->facts.fast_budget_bytes &&
        ranks_within(node->facts.resources(), spec, node->facts) > 0)
      add_node(state, gang, *node, view);
  view.state.now_h = static_cast<double>(state.clock.wall_ms()) / kMsOfHour;
  view.state.waiting_units = waiting_units(state, gang);
  view.state.costs = state.gangs.costs(gang.id, state.settings.gang_costs);
  view.state.fetch_h = fetch_hours(state, gang, checkpoint, view);
  const double told_h = static_cast<double>(spec.gang.estimate_ms) / kMsOfHour;
  view.job.work_h =
      state.gangs.left_h(gang.id, told_h > 0 ? told_h : state.settings.gang_estimate_h, checkpoint);
  view.shape = {.ranks = spec.gang.ranks,
                .units_per_rank = units_per_rank(spec),
                .ranks_per_node_min = spec.gang.ranks_per_node_min,
                .ranks_per_node_max = spec.gang.ranks_per_node_max};
  return view;
}

}  // namespace tierpilot
