#include "policies/sim/sharing/full_load/allocation_bound.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "policies/sim/sharing/full_load/clairvoyant.h"
#include "tests/unit/sim/sharing/full_load/idle_cluster.h"

namespace tierpilot::sharing {
namespace {

std::vector<Request> times(size_t count, const Request& request) {
  return std::vector<Request>(count, request);
}

TEST(AllocationBound, IsNoMoreThanWhatIsAskedForAndWhatThereIs) {
  EXPECT_EQ(allocation_bound({node_of(2)}, {asks_for(300), asks_for(700)}), 1000U);
  EXPECT_EQ(allocation_bound({node_of(2)}, times(100, asks_for(250))), 2000U);
}

TEST(AllocationBound, WhereNothingFitsThereIsNone) {
  EXPECT_EQ(allocation_bound({}, {}), 0U);
  EXPECT_EQ(allocation_bound({node_of(2)}, {}), 0U);
  EXPECT_EQ(allocation_bound({}, {asks_for(300)}), 0U);
  EXPECT_EQ(allocation_bound({node_of(0)}, {asks_for(300)}), 0U);
  auto of_other_model = asks_for(300), of_four = asks_for(1000);
  of_other_model.models = 2;
  of_four.units = 4;
  EXPECT_EQ(allocation_bound({node_of(2), node_of(2)}, {of_other_model, of_four}), 0U);
  EXPECT_EQ(allocation_bound({node_of(2, 500)}, {asks_for(300)}), 0U);
}

TEST(AllocationBound, KnowsThatSharesAreNotCut) {
  EXPECT_EQ(allocation_bound({node_of(4)}, times(10, asks_for(600))), 2400U);
  EXPECT_EQ(allocation_bound({node_of(4)}, times(20, asks_for(350))), 2800U);
}

TEST(AllocationBound, CoresOfAModelServeThatModel) {
  auto first = times(9, asks_for(1000)), second = first;
  for (auto& request : first) request.models = 1;
  for (auto& request : second) request.models = 2;
  first.insert(first.end(), second.begin(), second.end());
  EXPECT_EQ(allocation_bound({node_of(8, 4000, 0), node_of(8, 64'000, 1)}, first), 12'000U);
}

TEST(AllocationBound, MemoryOfNodesBounds) {
  auto request = asks_for(1000);
  request.memory_bytes = 64 * kGiB;
  EXPECT_EQ(allocation_bound({node_of(8)}, times(8, request)), 4000U);
}

// All that a choice may be, one request after the other.
struct Search {
  const std::vector<Request>& requests;
  std::vector<Node> nodes;
  uint64_t best = 0;

  void from(size_t i, uint64_t milli) {
    best = std::max(best, milli);
    uint64_t still = milli;
    for (size_t j = i; j < requests.size(); ++j) still += requests[j].total_milli();
    if (i == requests.size() || still <= best) return;
    const auto& request = requests[i];
    for (auto& node : nodes)
      for (size_t first = 0; first < node.units.size(); ++first) {
        if (!fits(node, request) || !fits(node.units[first], request.share)) continue;
        std::vector<uint32_t> units;  // of several whole ones it is the same which
        for (auto at = static_cast<uint32_t>(first);
             at < node.units.size() && units.size() < request.units; ++at)
          if (fits(node.units[at], request.share)) units.push_back(at);
        if (units.size() < request.units) continue;
        const auto before = node;
        subtract(node, request, units);
        from(i + 1, milli + request.total_milli());
        node = before;
      }
    from(i + 1, milli);
  }
};

struct Scene {
  std::vector<Node> nodes;
  std::vector<Request> requests;
};

Scene tiny_scene(SeededRandom& random) {
  Scene scene;
  for (uint64_t i = 0; i < 1 + random.below(3); ++i) {
    scene.nodes.push_back(node_of(random.below(3), 1000 * static_cast<uint32_t>(random.below(9)),
                                  static_cast<uint8_t>(random.below(2))));
    scene.nodes.back().memory_bytes = random.below(9) * kGiB;
  }
  for (uint64_t i = 0; i < 3 + random.below(5); ++i) {
    auto request = asks_for(50 * static_cast<uint32_t>(1 + random.below(20)),
                            500 * static_cast<uint32_t>(random.below(8)));
    if (random.chance(0.1)) {
      request.units = 2;
      request.share.milli = kWholeUnit;
    } else if (random.chance(0.1)) {
      request.units = request.share.milli = 0;
    }
    if (random.chance(0.3)) request.models = 1 + random.below(3);
    scene.requests.push_back(request);
  }
  return scene;
}

uint64_t milli_of(const Plan& plan, const Scene& scene) {
  Cluster cluster(scene.nodes);  // throws where something does not fit
  for (size_t i = 0; i < plan.size(); ++i)
    if (plan[i]) cluster.take(scene.requests[i], *plan[i]);
  return cluster.given_milli();
}

TEST(AllocationBound, IsAboveTheBestChoiceAndThatAboveThePlan) {
  SeededRandom random(7);
  int met = 0, reached = 0;
  constexpr int kScenes = 300;
  for (int i = 0; i < kScenes; ++i) {
    const auto scene = tiny_scene(random);
    Search search{scene.requests, scene.nodes};
    search.from(0, 0);
    const auto bound = allocation_bound(scene.nodes, scene.requests);
    const auto plan = milli_of(clairvoyant_plan(scene.nodes, scene.requests, {}, bound, 1), scene);
    ASSERT_GE(bound, search.best) << "scene " << i;
    ASSERT_LE(plan, search.best) << "scene " << i;
    met += bound == search.best;
    reached += plan == search.best;
  }
  EXPECT_GT(met, kScenes / 2);
  EXPECT_GT(reached, kScenes * 95 / 100);
}

TEST(AllocationBound, NodesOfManyKindsAreBoundedByTheirModels) {
  std::vector<Node> nodes;
  SeededRandom random(8);
  for (uint32_t i = 0; i < 200; ++i)
    nodes.push_back(node_of(1 + i % 4, 8000 + 10 * i, static_cast<uint8_t>(i % 2)));
  std::vector<Request> requests;
  for (int i = 0; i < 900; ++i) {
    requests.push_back(asks_for(static_cast<uint32_t>(300 + random.below(700)),
                                static_cast<uint32_t>(random.below(9000))));
    requests.back().models = 1 + random.below(3);
  }
  const auto bound = allocation_bound(nodes, requests);
  const auto plan = milli_of(clairvoyant_plan(nodes, requests, {}, bound, 1), {nodes, requests});
  EXPECT_LE(plan, bound);
  EXPECT_LT(bound, Cluster(nodes).capacity_milli());
}

}  // namespace
}  // namespace tierpilot::sharing
