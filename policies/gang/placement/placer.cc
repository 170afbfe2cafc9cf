#include "policies/gang/placement/placer.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "policies/gang/placement/candidates.h"

namespace tierpilot::gang {
namespace {

Units drawn(Units units, uint32_t count, SeededRandom& random) {
  for (uint32_t i = 0; i < count; ++i)
    std::swap(units[i], units[i + random.below(units.size() - i)]);
  units.resize(count);
  return units;
}

void sort_by_rate(const PlacementState& state, Units& units) {
  std::stable_sort(units.begin(), units.end(),
                   [&](uint32_t a, uint32_t b) { return state.per_h[a] < state.per_h[b]; });
}

// Nodes by how often their units failed so far.
Units fewest_faults(const PlacementState& state, uint32_t count) {
  std::vector<size_t> faults(state.node.empty() ? 0 : state.node.back() + 1);
  for (uint32_t unit = 0; unit < state.failed_h.size(); ++unit)
    faults[state.node_of(unit)] += state.failed_h[unit].size();
  auto units = free_units(state);
  std::stable_sort(units.begin(), units.end(), [&](uint32_t a, uint32_t b) {
    return faults[state.node_of(a)] < faults[state.node_of(b)];
  });
  units.resize(count);
  return units;
}

// One unit after the other from the node that has most free ones.
Units spread(const PlacementState& state, uint32_t count) {
  auto nodes = free_by_node(state);
  Units chosen;
  while (chosen.size() < count) {
    const auto most =
        std::max_element(nodes.begin(), nodes.end(),
                         [](const auto& a, const auto& b) { return a.size() < b.size(); });
    chosen.push_back(most->front());
    most->erase(most->begin());
  }
  return chosen;
}

using Cost = std::function<double(const Units&)>;

Units cheapest(const PlacementState& state, uint32_t count, const Cost& cost,
               const std::function<double(uint32_t)>& risk) {
  auto candidates = sound_candidates(state, count, risk);
  std::vector<double> costs;
  for (const auto& each : candidates) costs.push_back(cost(each));
  return std::move(candidates[static_cast<size_t>(std::min_element(costs.begin(), costs.end()) -
                                                  costs.begin())]);
}

// When a job would be done if it began now, knowing when its units fail: each failure costs half a
// checkpoint interval, the restart and, for want of the unit, no more: others may be free by then.
double known_hours(const PlacementState& state, const Job& job, const Units& units) {
  double rate = 0;
  std::set<uint32_t> nodes;
  for (const uint32_t unit : units) {
    rate += state.per_h[unit];
    nodes.insert(state.node_of(unit));
  }
  const double interval_h = checkpoint_interval_h(state.costs, rate);
  double hours = job.work_h * (1 + state.costs.checkpoint_h / interval_h) /
                 speed_of(job.network, job.units, nodes.size(), state.units_per_node);
  double first_h = std::numeric_limits<double>::infinity();
  for (const uint32_t unit : units)
    first_h = std::min(first_h, state.next_failure_h(unit, state.now_h));
  hours += fetch_hours(state, units);
  if (first_h < state.now_h + hours) hours += interval_h / 2 + state.costs.restart_h;
  return hours;
}

class ByFunction : public Placer {
 public:
  using Function = std::function<Units(const PlacementState&, const Job&)>;
  explicit ByFunction(Function function) : function_(std::move(function)) {}
  Units place(const PlacementState& state, const Job& job) override {
    return function_(state, job);
  }

 private:
  Function function_;
};

Units expected_time(const PlacementState& state, const Job& job) {
  return cheapest(
      state, job.units, [&](const Units& u) { return expected_hours(state, job, job.work_h, u); },
      [&](uint32_t unit) { return state.per_h[unit]; });
}

Units clairvoyant(const PlacementState& state, const Job& job) {
  return cheapest(
      state, job.units, [&](const Units& units) { return known_hours(state, job, units); },
      [&](uint32_t unit) { return -state.next_failure_h(unit, state.now_h); });
}

Units best_of_random(const PlacementState& state, const Job& job, SeededRandom& random) {
  constexpr int kDraws = 100;
  Units best;
  double least_h = std::numeric_limits<double>::infinity();
  const auto units = free_units(state);
  for (int i = 0; i < kDraws; ++i) {
    auto tried = drawn(units, job.units, random);
    const double hours = expected_hours(state, job, job.work_h, tried);
    if (hours >= least_h) continue;
    least_h = hours;
    best = std::move(tried);
  }
  return best;
}

Units first(Units units, uint32_t count) {
  units.resize(count);
  return units;
}

}  // namespace

double fetch_hours(const PlacementState& state, const Units& units) {
  double longest_h = 0;
  if (!state.fetch_h.empty())
    for (const uint32_t unit : units) longest_h = std::max(longest_h, state.fetch_h[unit]);
  return longest_h;
}

double expected_hours(const PlacementState& state, const Job& job, double work_h,
                      const Units& units) {
  double rate = 0;
  std::vector<uint32_t> nodes;
  for (const uint32_t unit : units) {
    rate += state.per_h[unit];
    nodes.push_back(state.node_of(unit));
  }
  std::sort(nodes.begin(), nodes.end());
  const auto count = std::unique(nodes.begin(), nodes.end()) - nodes.begin();
  return fetch_hours(state, units) +
         work_h * stretch_of(state.costs, rate) /
             speed_of(job.network, job.units, static_cast<uint32_t>(count), state.units_per_node);
}

namespace {

PlacerModule by(const char* name, const char* summary, ByFunction::Function place) {
  return {{{name, summary},
           [place](const PlacerOrigin&) { return std::make_unique<ByFunction>(place); }}};
}

using Draw = Units (*)(const PlacementState& state, const Job& job, SeededRandom& random);

PlacerModule drawing(const char* name, const char* summary, Draw draw) {
  const auto make = [draw](const PlacerOrigin& of) {
    auto random = std::make_shared<SeededRandom>(derived_seed(of.seed, "gang placer"));
    return std::make_unique<ByFunction>(
        [draw, random](const auto& state, const auto& job) { return draw(state, job, *random); });
  };
  return {{{name, summary}, make}, true};
}

PlacerModule foreseeing(PlacerModule module) {
  module.knows_future = true;
  return module;
}

PlacerModule remembering(PlacerModule module) {
  module.needs_past = true;
  return module;
}

}  // namespace

const PlacerModules& placers() {
  static const PlacerModules kPlacers(
      "gang policy",
      {drawing("random", "any free units",
               [](const PlacementState& state, const Job& job, SeededRandom& random) {
                 return drawn(free_units(state), job.units, random);
               }),
       drawing("best-of-100", "the least expected time of 100 random choices", best_of_random),
       by("first-fit", "the first free units",
          [](const auto& state, const auto& job) { return first(free_units(state), job.units); }),
       by("best-fit", "as few nodes as can be, where the least is left",
          [](const auto& state, const auto& job) { return best_fit(state, job.units); }),
       by("spread", "one after the other from the emptiest node",
          [](const auto& state, const auto& job) { return spread(state, job.units); }),
       by("least-failures", "the soundest units",
          [](const auto& state, const auto& job) {
            auto units = free_units(state);
            sort_by_rate(state, units);
            return first(std::move(units), job.units);
          }),
       remembering(
           by("fewest-faults", "the nodes that failed least often so far",
              [](const auto& state, const auto& job) { return fewest_faults(state, job.units); })),
       by("expected-time", "the least expected time, by failure rates and what spreading costs",
          expected_time),
       foreseeing(by("clairvoyant", "the least time, knowing the next failures", clairvoyant))});
  return kPlacers;
}

Result<std::unique_ptr<Placer>> make_placer(const std::string& name, uint64_t seed) {
  return placers().make(name, PlacerOrigin{.seed = seed});
}

}  // namespace tierpilot::gang
