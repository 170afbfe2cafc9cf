#include "policies/sim/sharing/full_load/allocation_bound.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "policies/sim/sharing/full_load/relaxed_cluster.h"
#include "policies/sim/sharing/full_load/restricted_master.h"

namespace tierpilot::sharing {
namespace {

constexpr double kMostProducts = 1e8;  // of prices and what is taken, about
constexpr double kMostSteps = 2000;
constexpr int kMostFunctions = 6;
constexpr double kClose = 5e-5;       // of the bound
constexpr double kRoundedSum = 1e-9;  // of sums

double steps_of(const RelaxedCluster& cluster) {
  const auto rows = static_cast<double>(cluster.rows());
  const auto requests = static_cast<double>(cluster.request_kinds());
  return std::min(kMostSteps, kMostProducts / (1 + rows * (requests + rows)));
}

std::vector<double> between(const std::vector<double>& a, const std::vector<double>& b,
                            double part_of_a) {
  std::vector<double> mean(a.size());
  for (size_t i = 0; i < a.size(); ++i) mean[i] = part_of_a * a[i] + (1 - part_of_a) * b[i];
  return mean;
}

struct Search {
  double bound = 0;
  std::vector<double> prices;
  std::vector<SharesGiven> given;  // by the solution, by kind of node
};

// From the prices of `search` on.
void lower(Search& search, const RelaxedCluster& cluster) {
  constexpr double kSteady = 0.8, kLessSteady = 0.2;
  RestrictedMaster master(cluster.rows());
  std::vector<RelaxedCluster::Choice> choices;
  auto prices = search.prices;
  double steady = kSteady;
  const double steps = steps_of(cluster);
  for (double step = 0; step < steps; ++step) {
    auto priced = cluster.priced(prices);
    if (priced.bound < search.bound) search = {priced.bound, prices, {}};
    // Prices that teach nothing are followed by some nearer to what the columns say.
    const bool learned =
        master.add({cluster.worth(priced.choice), cluster.taken(priced.choice)}, choices.size());
    if (learned) choices.push_back(std::move(priced.choice));
    if (!learned && steady == 0) break;
    steady = learned ? kSteady : std::max(0.0, steady - kLessSteady);
    if (search.bound - master.value() <= kClose * search.bound) break;
    prices = between(search.prices, master.prices(), steady);
  }
  search.given.assign(cluster.node_kinds(), {});
  for (const auto& [number, part] : master.mix())
    cluster.add_given(choices[number], part, search.given);
}

// Of all kinds of nodes the function that is broken most; nothing where none is.
std::optional<DualFeasible> broken(const Search& search, const RelaxedCluster& cluster) {
  std::optional<DualFeasible> function;
  double most = kClose * search.bound / kWholeUnit;
  for (size_t node = 0; node < search.given.size(); ++node) {
    const auto violated = most_taken(search.given[node]);
    if (violated.units - cluster.units(node) <= most) continue;
    most = violated.units - cluster.units(node);
    function = violated.function;
  }
  return function;
}

double least_bound(RelaxedCluster cluster) {
  Search search;
  search.prices.assign(cluster.rows(), 0);
  search.bound = cluster.priced(search.prices).bound;
  lower(search, cluster);
  for (int functions = 1; functions < kMostFunctions; ++functions) {
    const auto function = broken(search, cluster);
    if (!function) break;
    cluster.add_function(*function, search.prices);
    lower(search, cluster);
  }
  return search.bound;
}

}  // namespace

uint64_t allocation_bound(const std::vector<Node>& nodes, const std::vector<Request>& requests) {
  const double bound = least_bound(RelaxedCluster(nodes, requests)) * (1 + kRoundedSum);
  // Whole thousandths; the least part of one is rounding.
  return std::min(Cluster(nodes).capacity_milli(),
                  static_cast<uint64_t>(std::floor(bound + kRoundedSum)));
}

}  // namespace tierpilot::sharing
