#include "policies/sharing/chosen_scorer.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/random.h"
#include "policies/sharing/filling.h"
#include "policies/sharing/rivals.h"
#include "policies/sharing/share_scorer.h"

namespace tierpilot::sharing {
namespace {

constexpr size_t kMostNodes = 400;  // that are filled: more take long and tell little more
// Of small clusters each draw fills them otherwise, so there are more.
constexpr size_t kNodesInAll = 2000, kLeastDraws = 4, kMostDraws = 20;
constexpr double kLoad = 1.3;      // of the units
constexpr double kBetter = 0.001;  // of the units: less is chance

std::vector<std::unique_ptr<Scorer>> candidates(const std::vector<Request>& typical) {
  std::vector<std::unique_ptr<Scorer>> all;
  all.push_back(std::make_unique<ShareScorer>(typical));
  all.push_back(std::make_unique<FragmentationDescent>(typical));
  all.push_back(std::make_unique<UnitPacking>());
  all.push_back(std::make_unique<FirstFit>());
  all.push_back(std::make_unique<BestFit>());
  all.push_back(std::make_unique<MostFree>());
  return all;
}

double filled(const std::vector<Node>& nodes, const std::vector<Request>& arrivals,
              const Scorer& scorer) {
  Cluster cluster(nodes);
  Placer placer(scorer);
  for (const auto& request : arrivals)
    if (const auto placement = placer.choose(cluster, request)) cluster.take(request, *placement);
  return static_cast<double>(cluster.given_milli()) / static_cast<double>(cluster.capacity_milli());
}

}  // namespace

std::vector<Node> part_of(const std::vector<Node>& nodes, size_t most) {
  if (nodes.size() <= most) return nodes;
  std::vector<size_t> by_kind(nodes.size());
  std::iota(by_kind.begin(), by_kind.end(), size_t{0});
  std::stable_sort(by_kind.begin(), by_kind.end(), [&](size_t a, size_t b) {
    const auto kind = [](const Node& node) {
      return std::tuple(node.model, node.units.size(), node.cpu_milli, node.memory_bytes);
    };
    return kind(nodes[a]) < kind(nodes[b]);
  });
  std::vector<size_t> taken;
  for (size_t i = 0; i < most; ++i) taken.push_back(by_kind[i * nodes.size() / most]);
  std::sort(taken.begin(), taken.end());
  std::vector<Node> part;
  for (const size_t i : taken) part.push_back(nodes[i]);
  return part;
}

std::unique_ptr<Scorer> choose_scorer(const Usual& usual) {
  auto all = candidates(usual.requests);
  const auto nodes = part_of(usual.nodes, kMostNodes);
  const double milli = kLoad * static_cast<double>(Cluster(nodes).capacity_milli());
  const bool asks = std::any_of(usual.requests.begin(), usual.requests.end(),
                                [](const Request& each) { return each.total_milli() > 0; });
  if (milli <= 0 || !asks) return std::move(all.front());
  const auto draws = std::clamp(kNodesInAll / nodes.size(), kLeastDraws, kMostDraws);
  std::vector<double> sums(all.size(), 0);
  for (uint64_t draw = 0; draw < draws; ++draw) {
    const auto arrivals =
        drawn_arrivals(usual.requests, milli, derived_seed(draw, "chosen scorer"));
    for (size_t i = 0; i < all.size(); ++i) sums[i] += filled(nodes, arrivals, *all[i]);
  }
  const auto best = std::max_element(sums.begin(), sums.end());
  const bool is_better = *best > sums.front() + kBetter * static_cast<double>(draws);
  return std::move(all[is_better ? static_cast<size_t>(best - sums.begin()) : 0]);
}

}  // namespace tierpilot::sharing
