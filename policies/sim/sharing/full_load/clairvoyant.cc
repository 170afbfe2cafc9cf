#include "policies/sim/sharing/full_load/clairvoyant.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "policies/sharing/placement.h"
#include "policies/sim/sharing/full_load/refilling.h"

namespace tierpilot::sharing {
namespace {

constexpr double kStepsPerNode = 30;
constexpr double kLeastSteps = 1000;
constexpr double kMostWork = 3e7;  // kinds of requests that steps look at

// Those that ask for most of the units first.
std::vector<size_t> largest_first(const std::vector<Request>& requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return requests[a].total_milli() > requests[b].total_milli();
  });
  return order;
}

Plan plan_by(std::string_view policy, const std::vector<Node>& nodes,
             const std::vector<Request>& requests, const std::vector<size_t>& order) {
  const auto scorer = make_scorer(policy, {requests, nodes}).value();
  Cluster cluster(nodes);
  Placer placer(*scorer);
  Plan plan(requests.size());
  for (const auto i : order) {
    plan[i] = placer.choose(cluster, requests[i]);
    if (plan[i]) cluster.take(requests[i], *plan[i]);
  }
  return plan;
}

// Requests that are alike have one number.
struct Kinds {
  std::vector<Request> requests;             // one of each
  std::vector<std::vector<size_t>> of_kind;  // all of them
  std::vector<uint32_t> number;              // by request

  explicit Kinds(const std::vector<Request>& all) {
    const auto key = [](const Request& r) {
      return std::tuple(r.units, r.share.milli, r.share.memory_bytes, r.cpu_milli, r.memory_bytes,
                        r.models);
    };
    std::map<decltype(key(Request{})), uint32_t> numbers;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto next = static_cast<uint32_t>(requests.size());
      const auto [at, is_new] = numbers.try_emplace(key(all[i]), next);
      if (is_new) {
        requests.push_back(all[i]);
        of_kind.emplace_back();
      }
      of_kind[at->second].push_back(i);
      number.push_back(at->second);
    }
  }
};

Plan improved(const Plan& plan, const std::vector<Node>& nodes,
              const std::vector<Request>& requests, uint64_t bound_milli, uint64_t seed) {
  Kinds kinds(requests);
  std::vector<uint32_t> left;
  for (const auto& each : kinds.of_kind) left.push_back(static_cast<uint32_t>(each.size()));
  Refilling refilling(nodes, kinds.requests, left);
  for (size_t i = 0; i < plan.size(); ++i)
    if (plan[i]) refilling.place(kinds.number[i], *plan[i]);
  const double steps =
      std::min(std::max(kLeastSteps, kStepsPerNode * static_cast<double>(nodes.size())),
               kMostWork / static_cast<double>(left.size()));
  SeededRandom random(seed);
  for (double step = 0; step < steps && refilling.given_milli() < bound_milli; ++step)
    refilling.step(random);
  Plan better(requests.size());
  for (uint32_t node = 0; node < nodes.size(); ++node)
    for (const auto& [kind, units] : refilling.held(node)) {
      better[kinds.of_kind[kind].back()] = Placement{node, units};
      kinds.of_kind[kind].pop_back();
    }
  return better;
}

}  // namespace

uint64_t planned_milli(const Plan& plan, const std::vector<Request>& requests, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i)
    if (plan[i]) sum += requests[i].total_milli();
  return sum;
}

Plan clairvoyant_plan(const std::vector<Node>& nodes, const std::vector<Request>& requests,
                      const std::vector<Plan>& given, uint64_t bound_milli, uint64_t seed) {
  if (requests.empty()) return {};
  auto plans = given;
  const auto order = largest_first(requests);
  for (const auto policy : {"best-fit", "fgd"})
    plans.push_back(plan_by(policy, nodes, requests, order));
  const auto milli = [&](const Plan& plan) {
    return planned_milli(plan, requests, requests.size());
  };
  const auto best = std::max_element(plans.begin(), plans.end(), [&](const Plan& a, const Plan& b) {
    return milli(a) < milli(b);
  });
  return improved(*best, nodes, requests, bound_milli, seed);
}

}  // namespace tierpilot::sharing
