#include "policies/placement/heuristics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "policies/placement/dqn/module.h"
#include "policies/placement/fallback.h"
#include "policies/placement/measures.h"
#include "policies/placement/registry.h"
#include "tests/unit/policies/view_builder.h"

namespace tierpilot {
namespace {

using testing_views::node;
using testing_views::view_of;

size_t choice(Policy& policy, const View& view) {
  return policy.decide(view).node;
}

std::unique_ptr<Policy> heuristic(const std::string& name, uint64_t seed = 7) {
  return *make_policy(name, seed);
}

const char* const kHeuristics[] = {"random",          "round-robin",    "least-loaded",
                                   "locality-greedy", "locality-load",  "earliest-finish",
                                   "least-cost",      "delay-locality", "delay-finish"};

TEST(Heuristics, NeverChooseANodeThatIsNoCandidate) {
  View view = view_of({node(0), node(1, 1, 100), node(2)});
  view.nodes[0].candidate = view.nodes[1].candidate = false;
  for (const char* name : kHeuristics) {
    const auto policy = heuristic(name);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(choice(*policy, view), 2u) << name;
  }
}

TEST(Heuristics, SayWhenThereIsNoCandidate) {
  View view = view_of({node(0)});
  view.nodes[0].candidate = false;
  for (const View& empty : {view, View{}}) {
    for (const char* name : kHeuristics) {
      const Decision decision = heuristic(name)->decide(empty);
      EXPECT_EQ(decision.node, kNoNode) << name;
      EXPECT_EQ(decision.reason, "no candidate node");
    }
  }
}

TEST(Heuristics, AreRepeatableForASeed) {
  const View view = view_of({node(0), node(1), node(2)});
  for (const char* name : kHeuristics) {
    const auto first = heuristic(name, 11);
    const auto second = heuristic(name, 11);
    for (int i = 0; i < 50; ++i) ASSERT_EQ(choice(*first, view), choice(*second, view)) << name;
  }
}

TEST(Heuristics, RandomSharesEvenly) {
  const View view = view_of({node(0, 5), node(1), node(2, 0, 100)});
  const auto policy = heuristic("random");
  std::map<size_t, int> counts;
  for (int i = 0; i < 3000; ++i) ++counts[choice(*policy, view)];
  for (const auto& [index, count] : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(counts.size(), 3u);
}

TEST(Heuristics, RoundRobinFollowsSlotsWhileNodesComeAndGo) {
  const auto policy = heuristic("round-robin");
  const View three = view_of({node(4), node(1), node(9)});
  EXPECT_EQ(choice(*policy, three), 1u);
  EXPECT_EQ(choice(*policy, three), 0u);
  EXPECT_EQ(choice(*policy, view_of({node(4), node(1)})), 1u) << "slot 9 has gone: from the start";
  EXPECT_EQ(choice(*policy, three), 0u);
  EXPECT_EQ(choice(*policy, three), 2u);
  EXPECT_EQ(choice(*policy, three), 1u);
}

TEST(Heuristics, LeastLoadedCountsWaitingTasksPerUnit) {
  View view = view_of({node(0, 2), node(1, 3)});
  view.nodes[1].units = 8;
  EXPECT_EQ(choice(*heuristic("least-loaded"), view), 1u);
}

TEST(Heuristics, LocalityGreedyPrefersFastThenSlowThenIdle) {
  const auto policy = heuristic("locality-greedy");
  EXPECT_EQ(choice(*policy, view_of({node(0, 0, 10, 90), node(1, 9, 20, 0)})), 1u);
  EXPECT_EQ(choice(*policy, view_of({node(0, 0, 20, 10), node(1, 9, 20, 30)})), 1u);
  EXPECT_EQ(choice(*policy, view_of({node(0, 3, 20, 10), node(1, 1, 20, 10)})), 1u);
}

TEST(Heuristics, LocalityLoadGivesUpLocalityWhereTheQueueIsLong) {
  const auto policy = heuristic("locality-load");
  EXPECT_EQ(choice(*policy, view_of({node(0, 2, 100), node(1, 0)})), 0u);
  EXPECT_EQ(choice(*policy, view_of({node(0, 8, 100), node(1, 0)})), 1u);
}

TEST(Heuristics, DelaySchedulingWaitsForAFullNodeThatHasMoreOfTheData) {
  View view = view_of({node(0, 8, 100), node(1, 0, 50), node(2, 8, 100)});
  for (const size_t full : {0, 2}) view.nodes[full].candidate = false, view.nodes[full].full = true;
  view.nodes[0].held_units = 1;  // more wait for it
  view.may_hold = true;
  const auto policy = heuristic("delay-locality");
  const Decision waits = policy->decide(view);
  EXPECT_EQ(waits.node, kNoNode);
  EXPECT_EQ(waits.held_for, 2u);
  view.nodes[1].held_fast_bytes = 100;
  EXPECT_EQ(choice(*policy, view), 1u) << "it has as much";
  view.nodes[1].held_fast_bytes = 50;
  view.may_hold = false;
  EXPECT_EQ(choice(*policy, view), 1u);
}

TEST(Heuristics, DelayFinishDecidesAsTheFallback) {
  View view = view_of({node(0, 8, 100), node(1, 1), node(2, 2, 50)});
  view.nodes[0].candidate = false;
  view.nodes[0].full = view.may_hold = true;
  view.nodes[0].assigned_operations = 8 * view.task.operations;
  for (const double rate : {1e1, 1e4, 1e9}) {
    for (NodeState& each : view.nodes) each.rates.fetch_bytes_per_s = rate;
    const Decision own = heuristic("delay-finish")->decide(view);
    const Decision fallback = fallback_decide(view);
    EXPECT_EQ(own.node, fallback.node) << rate;
    EXPECT_EQ(own.held_for, fallback.held_for) << rate;
  }
}

TEST(Registry, KnowsTheNamesThatMustExist) {
  const auto modules = placement_modules();
  for (const char* name : {"random", "least-loaded", "locality-greedy", "dqn", "dqn-published"})
    EXPECT_TRUE(modules.find(name)) << name;
  const auto unknown = make_policy("oracle");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_NE(unknown.error().message.find("locality-greedy"), std::string::npos);
}

// Whatever a host does with modules, it can do with each.
TEST(Registry, EveryModuleCanBeHosted) {
  const View view = view_of({node(0, 1), node(1, 2)});
  for (const PlacementModule& module : placement_modules()) {
    EXPECT_FALSE(module.info.summary.empty()) << module.info.name;
    if (!module.learning) {
      const auto policy = module.make(1);
      ASSERT_TRUE(policy) << module.info.name;
      EXPECT_LT((*policy)->decide(view).node, 2u) << module.info.name;
      EXPECT_EQ((*policy)->holds(), module.holds) << module.info.name;
      continue;
    }
    EXPECT_EQ(module.make(1).error().code, ErrorCode::kUnavailable) << "without weights";
    EXPECT_TRUE(module.learning->check());
    EXPECT_FALSE(module.learning->settings().empty());
    const auto measures = placement_measures();
    EXPECT_TRUE(std::any_of(measures.begin(), measures.end(), [&](const BoundedMeasure& measure) {
      return measure.name == module.learning->traits().judged;
    }));
    const auto started = module.learning->start(1, 16);
    ASSERT_TRUE(started) << module.info.name;
    EXPECT_EQ(started->begins_from, "no weights");
    EXPECT_LT(started->policy->decide(view).node, 2u) << module.info.name;
    EXPECT_EQ(started->policy->holds(), module.holds) << module.info.name;
  }
}

TEST(Registry, AModuleThatIsPutTakesThePlaceOfTheOneOfItsName) {
  auto modules = placement_modules();
  const auto names = modules.names();
  modules.put(dqn_module({.epsilon = 0.25}));
  EXPECT_EQ(modules.names(), names);
  EXPECT_EQ(modules.find("dqn")->learning->epsilon(), 0.25);
}

}  // namespace
}  // namespace tierpilot
