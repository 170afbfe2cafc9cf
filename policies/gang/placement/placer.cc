#include "policies/gang/placement/placer.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

namespace tierpilot::gang {
namespace {

using Units = std::vector<uint32_t>;

Units free_units(const PlacementState& state) {
  Units units;
  for (uint32_t unit = 0; unit < state.free.size(); ++unit)
    if (state.free[unit]) units.push_back(unit);
  return units;
}

Units drawn(Units units, uint32_t count, SeededRandom& random) {
  for (uint32_t i = 0; i < count; ++i)
    std::swap(units[i], units[i + random.below(units.size() - i)]);
  units.resize(count);
  return units;
}

// Free units of each node that has some.
std::vector<Units> by_node(const PlacementState& state) {
  std::vector<Units> nodes;
  uint32_t last = UINT32_MAX;
  for (const uint32_t unit : free_units(state)) {
    if (state.node_of(unit) != last) nodes.emplace_back();
    last = state.node_of(unit);
    nodes.back().push_back(unit);
  }
  return nodes;
}

void sort_by_rate(const PlacementState& state, Units& units) {
  std::stable_sort(units.begin(), units.end(),
                   [&](uint32_t a, uint32_t b) { return state.per_h[a] < state.per_h[b]; });
}

// The one node with the fewest free units that suffice; without one, the emptiest nodes first.
Units best_fit(const PlacementState& state, uint32_t count) {
  auto nodes = by_node(state);
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

// One unit after the other from the node that has most free ones.
Units spread(const PlacementState& state, uint32_t count) {
  auto nodes = by_node(state);
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

// The cheapest of: the soundest units; the soundest nodes for each count of units taken from a
// node; each node alone.
Units cheapest(const PlacementState& state, uint32_t count, const Cost& cost,
               const std::function<double(uint32_t)>& risk) {
  auto units = free_units(state);
  const auto sounder = [&](uint32_t a, uint32_t b) { return risk(a) < risk(b); };
  std::stable_sort(units.begin(), units.end(), sounder);
  std::vector<Units> candidates{{units.begin(), units.begin() + count}, best_fit(state, count)};
  auto nodes = by_node(state);
  for (auto& node : nodes) std::stable_sort(node.begin(), node.end(), sounder);
  for (uint32_t each = std::min(count, state.units_per_node); each > 1; --each) {
    std::vector<std::pair<double, const Units*>> order;
    for (const auto& node : nodes) {
      if (node.size() < each) continue;
      const double sum =
          std::accumulate(node.begin(), node.begin() + each, 0.0,
                          [&](double all, uint32_t unit) { return all + risk(unit); });
      order.emplace_back(sum, &node);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Units chosen;
    for (const auto& [sum, node] : order)
      for (uint32_t i = 0; i < each && chosen.size() < count; ++i) chosen.push_back((*node)[i]);
    if (chosen.size() == count) candidates.push_back(std::move(chosen));
  }
  const auto best =
      std::min_element(candidates.begin(), candidates.end(),
                       [&](const auto& a, const auto& b) { return cost(a) < cost(b); });
  return *best;
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
  return work_h * stretch_of(state.costs, rate) /
         speed_of(job.network, job.units, static_cast<uint32_t>(count), state.units_per_node);
}

const std::vector<std::string>& placer_names() {
  static const std::vector<std::string> names{"random",        "best-of-100", "first-fit",
                                              "best-fit",      "spread",      "least-failures",
                                              "expected-time", "clairvoyant"};
  return names;
}

Result<std::unique_ptr<Placer>> make_placer(const std::string& name, uint64_t seed) {
  auto random = std::make_shared<SeededRandom>(derived_seed(seed, "gang placer"));
  ByFunction::Function function;
  if (name == "random")
    function = [random](const auto& state, const auto& job) {
      return drawn(free_units(state), job.units, *random);
    };
  if (name == "best-of-100")
    function = [random](const auto& state, const auto& job) {
      return best_of_random(state, job, *random);
    };
  if (name == "first-fit")
    function = [](const auto& state, const auto& job) {
      return first(free_units(state), job.units);
    };
  if (name == "best-fit")
    function = [](const auto& state, const auto& job) { return best_fit(state, job.units); };
  if (name == "spread")
    function = [](const auto& state, const auto& job) { return spread(state, job.units); };
  if (name == "least-failures")
    function = [](const auto& state, const auto& job) {
      auto units = free_units(state);
      sort_by_rate(state, units);
      return first(std::move(units), job.units);
    };
  if (name == "expected-time") function = expected_time;
  if (name == "clairvoyant") function = clairvoyant;
  if (function) return std::make_unique<ByFunction>(std::move(function));
  std::string known;
  for (const auto& each : placer_names()) known += (known.empty() ? "" : ", ") + each;
  return fail(ErrorCode::kNotFound, "no gang policy '" + name + "'; there are " + known);
}

}  // namespace tierpilot::gang
