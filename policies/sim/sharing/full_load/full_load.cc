#include "policies/sim/sharing/full_load/full_load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "policies/sharing/filling.h"
#include "policies/sharing/fragmentation.h"
#include "policies/sharing/placement.h"
#include "policies/sim/sharing/full_load/allocation_bound.h"
#include "policies/sim/sharing/full_load/clairvoyant.h"

namespace tierpilot::sharing {
namespace {

std::vector<Request> requests_of(const PodTrace& trace) {
  std::vector<Request> requests;
  for (const auto& pod : trace.pods) requests.push_back(pod.request);
  return requests;
}

// What comes with a seed, and how much of it until it asks for as much as there is.
struct Arrivals {
  std::vector<Request> all;
  size_t until_capacity = 0;
  double capacity_milli = 0;

  std::vector<Request> first(size_t count) const {
    return {all.begin(), all.begin() + static_cast<ptrdiff_t>(count)};
  }
};

Arrivals arrivals_of(const PodTrace& trace, double load, uint64_t seed) {
  Arrivals arrivals{inflated(trace, load, seed), 0, 0};
  const uint64_t capacity = Cluster(trace.nodes).capacity_milli();
  arrivals.capacity_milli = static_cast<double>(capacity);
  uint64_t asked = 0;
  for (const auto& request : arrivals.all) {
    asked += request.total_milli();
    if (asked > capacity) break;
    ++arrivals.until_capacity;
  }
  return arrivals;
}

// As they come; what is given may be more than is asked for.
std::pair<Plan, Cluster> play(const PodTrace& trace, const std::vector<Request>& arrivals,
                              const Scorer& scorer) {
  Cluster cluster(trace.nodes);
  Placer placer(scorer);
  Plan plan;
  for (const auto& request : arrivals) {
    const Request given = scorer.given(request);
    plan.push_back(placer.choose(cluster, given));
    if (plan.back()) cluster.take(given, *plan.back());
  }
  return {std::move(plan), std::move(cluster)};
}

// `until_capacity`: where that has a plan of its own.
FullLoadRun measured(const Arrivals& arrivals, const Plan& plan, const Plan& until_capacity,
                     const Cluster& cluster, const Fragmentation& fragmentation) {
  const auto part = [&](const Plan& plan, size_t count) {
    return static_cast<double>(planned_milli(plan, arrivals.all, count)) / arrivals.capacity_milli;
  };
  FullLoadRun run;
  run.allocation = part(plan, plan.size());
  run.allocation_at_capacity = part(until_capacity, arrivals.until_capacity);
  run.given = static_cast<double>(cluster.given_milli()) / arrivals.capacity_milli;
  for (const auto& node : cluster.nodes()) run.fragmentation += fragmentation.milli(node);
  run.fragmentation /= arrivals.capacity_milli;
  run.pods = plan.size();
  run.left_out = static_cast<uint64_t>(std::count(plan.begin(), plan.end(), std::nullopt));
  return run;
}

FullLoadBound bound_of(const PodTrace& trace, const Arrivals& arrivals, uint64_t seed) {
  const auto part = [&](size_t count) {
    return static_cast<double>(allocation_bound(trace.nodes, arrivals.first(count))) /
           arrivals.capacity_milli;
  };
  return {seed, part(arrivals.all.size()), part(arrivals.until_capacity)};
}

// The best of others' plans at each moment that is measured.
struct BestPlans {
  Plan at_end, until_capacity;

  void consider(const Plan& plan, const Arrivals& arrivals) {
    const auto keep = [&](Plan& best, size_t count) {
      if (best.empty() ||
          planned_milli(plan, arrivals.all, count) > planned_milli(best, arrivals.all, count))
        best.assign(plan.begin(), plan.begin() + static_cast<ptrdiff_t>(count));
    };
    keep(at_end, arrivals.all.size());
    keep(until_capacity, arrivals.until_capacity);
  }
};

FullLoadRun foresee(const PodTrace& trace, const Arrivals& arrivals, const BestPlans& others,
                    const FullLoadBound& bound, const Fragmentation& fragmentation) {
  const auto planned = [&](size_t count, const Plan& best, double most) {
    return clairvoyant_plan(trace.nodes, arrivals.first(count),
                            best.empty() ? std::vector<Plan>() : std::vector<Plan>{best},
                            static_cast<uint64_t>(std::round(most * arrivals.capacity_milli)),
                            derived_seed(bound.seed, kForesight));
  };
  const auto plan = planned(arrivals.all.size(), others.at_end, bound.allocation);
  const auto until_capacity =
      planned(arrivals.until_capacity, others.until_capacity, bound.allocation_at_capacity);
  Cluster cluster(trace.nodes);
  for (size_t i = 0; i < plan.size(); ++i)
    if (plan[i]) cluster.take(arrivals.all[i], *plan[i]);
  return measured(arrivals, plan, until_capacity, cluster, fragmentation);
}

// Where hardly a pod asks for a unit it takes endless lists of them to fill any.
Status check_arrivals(const PodTrace& trace, const std::vector<Request>& listed, double load) {
  constexpr double kMost = 2e7;
  double milli = 0;
  for (const auto& request : listed) milli += static_cast<double>(request.total_milli());
  const double capacity = static_cast<double>(Cluster(trace.nodes).capacity_milli());
  if (milli <= 0 || load * capacity / milli * static_cast<double>(listed.size()) <= kMost)
    return {};
  return fail(
      ErrorCode::kInvalid,
      fmt::format("the pods ask for so little of units that more than {} of them would fill "
                  "the nodes: take fewer nodes, or leave out pods that want no unit",
                  kMost));
}

struct Players {
  std::vector<std::pair<std::string, std::unique_ptr<Scorer>>> scorers;
  bool clairvoyant = false;
};

Result<Players> players_of(const PodTrace& trace, const std::vector<Request>& usual,
                           const std::vector<std::string>& policies) {
  if (auto known = check_full_load_policies(policies); !known) return tl::unexpected(known.error());
  Players players;
  for (const auto& policy : policies) {
    if (policy == kForesight) {
      players.clairvoyant = true;
      continue;
    }
    auto scorer = make_scorer(policy, {usual, trace.nodes});
    if (!scorer) return tl::unexpected(scorer.error());
    players.scorers.emplace_back(policy, std::move(*scorer));
  }
  return players;
}

}  // namespace

std::vector<Request> inflated(const PodTrace& trace, double load, uint64_t seed) {
  return drawn_arrivals(requests_of(trace),
                        load * static_cast<double>(Cluster(trace.nodes).capacity_milli()),
                        derived_seed(seed, "full load"));
}

std::vector<std::string> full_load_policies() {
  auto names = scorers().names();
  names.emplace_back(kForesight);
  return names;
}

Status check_full_load_policies(const std::vector<std::string>& policies) {
  const auto known = full_load_policies();
  for (const auto& policy : policies)
    if (std::find(known.begin(), known.end(), policy) == known.end())
      return fail(ErrorCode::kNotFound, fmt::format("policy '{}' does not exist: there are {}",
                                                    policy, fmt::join(known, ", ")));
  return {};
}

Result<FullLoad> run_full_load(const PodTrace& trace, const FullLoadOptions& options) {
  const auto typical = requests_of(trace);
  if (auto many = check_arrivals(trace, typical, options.load); !many)
    return tl::unexpected(many.error());
  const auto players = players_of(trace, typical, options.policies);
  if (!players) return tl::unexpected(players.error());
  const Fragmentation fragmentation(typical_requests(typical, 1));
  FullLoad load;
  const auto add = [&](FullLoadRun run, std::string_view policy, uint64_t seed) {
    run.policy = policy;
    run.seed = seed;
    load.runs.push_back(std::move(run));
    if (options.progress)
      options.progress(static_cast<double>(load.runs.size()) /
                       static_cast<double>(options.seeds * options.policies.size()));
  };
  for (uint64_t seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed) {
    const auto arrivals = arrivals_of(trace, options.load, seed);
    BestPlans best;
    for (const auto& [policy, scorer] : players->scorers) {
      auto [plan, cluster] = play(trace, arrivals.all, *scorer);
      add(measured(arrivals, plan, plan, cluster, fragmentation), policy, seed);
      if (players->clairvoyant) best.consider(plan, arrivals);
    }
    load.bounds.push_back(bound_of(trace, arrivals, seed));
    if (players->clairvoyant)
      add(foresee(trace, arrivals, best, load.bounds.back(), fragmentation), kForesight, seed);
  }
  return load;
}

}  // namespace tierpilot::sharing
