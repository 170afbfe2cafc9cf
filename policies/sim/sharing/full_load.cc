#include "policies/sim/sharing/full_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "policies/sharing/filling.h"
#include "policies/sharing/fragmentation.h"
#include "policies/sharing/placement.h"

namespace tierpilot::sharing {
namespace {

std::vector<Request> requests_of(const PodTrace& trace) {
  std::vector<Request> requests;
  for (const auto& pod : trace.pods) requests.push_back(pod.request);
  return requests;
}

FullLoadRun play(const PodTrace& trace, const std::vector<Request>& arrivals, const Scorer& scorer,
                 const Fragmentation& fragmentation) {
  FullLoadRun run;
  Cluster cluster(trace.nodes);
  Placer placer(scorer);
  const double capacity = static_cast<double>(cluster.capacity_milli());
  uint64_t arrived = 0, asked = 0;
  for (const auto& request : arrivals) {
    const Request given = scorer.given(request);
    ++run.pods;
    arrived += request.total_milli();
    if (const auto placement = placer.choose(cluster, given)) {
      cluster.take(given, *placement);
      asked += request.total_milli();
    } else {
      ++run.left_out;
    }
    if (static_cast<double>(arrived) <= capacity)
      run.allocation_at_capacity = static_cast<double>(asked) / capacity;
  }
  run.allocation = static_cast<double>(asked) / capacity;
  run.given = static_cast<double>(cluster.given_milli()) / capacity;
  for (const auto& node : cluster.nodes()) run.fragmentation += fragmentation.milli(node);
  run.fragmentation /= capacity;
  return run;
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

}  // namespace

std::vector<Request> inflated(const PodTrace& trace, double load, uint64_t seed) {
  return drawn_arrivals(requests_of(trace),
                        load * static_cast<double>(Cluster(trace.nodes).capacity_milli()),
                        derived_seed(seed, "full load"));
}

Result<std::vector<FullLoadRun>> run_full_load(const PodTrace& trace,
                                               const FullLoadOptions& options) {
  const auto typical = requests_of(trace);
  if (auto many = check_arrivals(trace, typical, options.load); !many)
    return tl::unexpected(many.error());
  const Fragmentation fragmentation(typical_requests(typical, 1), Fragmentation::Host::kCpu);
  std::vector<std::unique_ptr<Scorer>> scorers;
  for (const auto& policy : options.policies) {
    auto scorer = make_scorer(policy, {typical, trace.nodes});
    if (!scorer) return tl::unexpected(scorer.error());
    scorers.push_back(std::move(*scorer));
  }
  std::vector<FullLoadRun> runs;
  for (uint64_t seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed) {
    const auto arrivals = inflated(trace, options.load, seed);
    for (size_t i = 0; i < scorers.size(); ++i) {
      auto run = play(trace, arrivals, *scorers[i], fragmentation);
      run.policy = options.policies[i];
      run.seed = seed;
      runs.push_back(std::move(run));
      if (options.progress)
        options.progress(static_cast<double>(runs.size()) /
                         static_cast<double>(options.seeds * options.policies.size()));
    }
  }
  return runs;
}

}  // namespace tierpilot::sharing
