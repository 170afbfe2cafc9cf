#include "policies/sim/sharing/full_load/clairvoyant.h"

#include <gtest/gtest.h>

#include "policies/sharing/filling.h"
#include "policies/sim/sharing/full_load/refilling.h"
#include "policies/sim/sharing/pods.h"
#include "tests/unit/sim/sharing/full_load/idle_cluster.h"

namespace tierpilot::sharing {
namespace {

constexpr uint64_t kNoBound = ~uint64_t{0};

uint64_t planned(const Plan& plan, const std::vector<Request>& requests) {
  return planned_milli(plan, requests, requests.size());
}

TEST(Clairvoyant, LeavesOutWhatStandsInTheWayOfMore) {
  const std::vector<Request> requests{asks_for(600), asks_for(500), asks_for(500)};
  EXPECT_EQ(clairvoyant_plan({node_of(1)}, requests, {}, kNoBound, 1),
            (Plan{std::nullopt, Placement{0, {0}}, Placement{0, {0}}}));
}

TEST(Clairvoyant, PodsWithoutUnitsComeInWhatIsLeft) {
  const std::vector<Request> requests{
      {.cpu_milli = 3000}, asks_for(100, 3000), {.cpu_milli = 1000}};
  const auto plan = clairvoyant_plan({node_of(1, 4000)}, requests, {}, kNoBound, 1);
  EXPECT_FALSE(plan[0]);
  EXPECT_TRUE(plan[1]);
  EXPECT_TRUE(plan[2]);
}

TEST(Clairvoyant, IsNoWorseThanAPlanThatIsGiven) {
  const std::vector<Request> requests{asks_for(600), asks_for(400), asks_for(300), asks_for(300),
                                      asks_for(400)};
  const Plan given{Placement{0, {0}}, Placement{0, {0}}, Placement{0, {1}}, Placement{0, {1}},
                   Placement{0, {1}}};
  EXPECT_EQ(planned(clairvoyant_plan({node_of(2)}, requests, {given}, kNoBound, 1), requests),
            2000U);
}

TEST(Clairvoyant, NothingIsPlannedWhereThereIsNothing) {
  EXPECT_TRUE(clairvoyant_plan({node_of(1)}, {}, {}, kNoBound, 1).empty());
  EXPECT_EQ(clairvoyant_plan({}, {asks_for(1)}, {}, kNoBound, 1), Plan(1));
  EXPECT_EQ(clairvoyant_plan({node_of(0)}, {asks_for(1)}, {}, kNoBound, 1), Plan(1));
}

TEST(Clairvoyant, FitsAndIsTheSameForASeed) {
  const auto trace = generate_pods(6, 20, 300);
  std::vector<Request> requests;
  for (const auto& pod : trace.pods) requests.push_back(pod.request);
  const double milli = 1.1 * static_cast<double>(Cluster(trace.nodes).capacity_milli());
  requests = drawn_arrivals(requests, milli, 1);
  const auto plan = clairvoyant_plan(trace.nodes, requests, {}, kNoBound, 1);
  EXPECT_EQ(plan, clairvoyant_plan(trace.nodes, requests, {}, kNoBound, 1));
  Cluster cluster(trace.nodes);  // throws where something does not fit
  for (size_t i = 0; i < plan.size(); ++i)
    if (plan[i]) cluster.take(requests[i], *plan[i]);
  EXPECT_EQ(cluster.given_milli(), planned(plan, requests));
}

TEST(Refilling, NeverGivesLess) {
  const std::vector<Request> kinds{asks_for(700), asks_for(550), asks_for(450), asks_for(300)};
  Refilling refilling({node_of(2), node_of(3)}, kinds, {3, 3, 3, 3});
  refilling.place(3, {0, {0}});
  refilling.place(3, {0, {1}});
  refilling.place(1, {1, {0}});
  SeededRandom random(2);
  uint64_t before = refilling.given_milli();
  for (int i = 0; i < 500; ++i) {
    refilling.step(random);
    EXPECT_GE(refilling.given_milli(), before);
    before = refilling.given_milli();
  }
  EXPECT_EQ(before, 5000U);
}

}  // namespace
}  // namespace tierpilot::sharing
