// What no plan can be better than: reckoned by hand on a small step, and below every policy.
#include "policies/swap/bound/bound.h"

#include "policies/swap/bound/min_cut.h"
#include "policies/swap/bound/peak.h"
#include "policies/swap/policies.h"
#include "tests/unit/swap/chain.h"
#include "tests/unit/swap/ladder.h"
#include "tests/unit/swap/logs.h"

namespace tierpilot::swap {
namespace {

int64_t more_ns(const Graph& graph, const Limits& limits) {
  const auto outcome = bound(graph, limits);
  EXPECT_TRUE(outcome.done) << outcome.reason;
  return outcome.clock_ns - 1 - outcome.base_time_ns;
}

TEST(Bound, IsWhatIsReckonedByHand) {
  const auto graph = ladder();
  EXPECT_EQ(more_ns(graph, {.budget_bytes = 500}), 0);
  // While c, x and w are there is room for one of a and b: a is made again in 10 ns.
  const auto least = more_ns(graph, {.budget_bytes = 400});
  EXPECT_LE(least, 10);
  EXPECT_GE(least, 9);  // prices go up in steps
}

TEST(Bound, ALinkThatCarriesAllCostsNothing) {
  EXPECT_EQ(more_ns(ladder(), {.budget_bytes = 400, .link = {.gb_per_s = 1000}}), 0);
}

TEST(Bound, SaysHowMuchIsNeededWhereNothingGetsThrough) {
  const auto graph = ladder();
  const auto outcome = bound(graph, {.budget_bytes = 399});
  EXPECT_FALSE(outcome.done);
  EXPECT_NE(outcome.reason.find("operator 4 'g' needs 400 bytes"), std::string::npos)
      << outcome.reason;
  EXPECT_NE(outcome.reason.find("100 of them constants"), std::string::npos) << outcome.reason;
  EXPECT_NE(outcome.reason.find("1 more than the budget"), std::string::npos) << outcome.reason;
  for (const auto* policy : {"swap", "swap-quick"})
    EXPECT_EQ(replay(graph, policy, {.limits = {.budget_bytes = 399}})->outcome.reason,
              outcome.reason);
}

TEST(Bound, NoPolicyIsBelowIt) {
  for (const uint64_t seed : {1, 2, 3, 4})
    for (const double ratio : {0.8, 0.6, 0.45, 0.3})
      for (const double gb_per_s : {0.0, 3.0, 12.0}) {
        const auto graph = chain(24, seed);
        const auto peak = static_cast<double>(baseline(graph).peak_bytes);
        const Limits limits{.budget_bytes = static_cast<int64_t>(ratio * peak),
                            .thrash_limit = 10,
                            .link = {.gb_per_s = gb_per_s}};
        const auto least = bound(graph, limits);
        for (const auto& policy : policy_infos()) {
          if (policy.name == "bound") continue;
          const auto outcome = replay(graph, policy.name, {.limits = limits})->outcome;
          if (!outcome.done) continue;
          EXPECT_TRUE(least.done) << policy.name << " gets through";
          EXPECT_LE(least.clock_ns, outcome.clock_ns) << policy.name << " " << seed << " " << ratio;
        }
      }
}

// Dropping b alone costs 20 ns, and a with it 10 more: the price by byte decides.
TEST(Peak, MakesAgainWhatIsCheaperThanItsBytes) {
  const auto graph = ladder();
  const Timetable timetable(graph);
  Peak peak(graph, timetable, 3);
  EXPECT_EQ(peak.fixed_bytes(), 300);
  EXPECT_EQ(peak.solve(0.05), 10);  // both stay, at 5 each
  EXPECT_EQ(peak.available_bytes(), 200);
  EXPECT_EQ(peak.solve(0.15), 25);  // 10 ns for a, and b stays at 15
  EXPECT_EQ(peak.available_bytes(), 100);
  EXPECT_EQ(peak.made_again_ns(), 10);
  EXPECT_EQ(peak.solve(0.3), 30);
  EXPECT_EQ(peak.available_bytes(), 0);
}

TEST(MinCut, GrowsWithItsCapacities) {
  MinCut cut(2);
  const auto first = cut.add(MinCut::kSource, 2, 3);
  cut.add(2, 3, 5);
  cut.add(MinCut::kSource, 3, 4);
  cut.add(3, MinCut::kSink, 6);
  EXPECT_EQ(cut.solve(), 6);
  EXPECT_TRUE(cut.on_source_side(2) && cut.on_source_side(3));
  cut.grow(first, 10);
  EXPECT_EQ(cut.solve(), 6);
  const auto more = cut.add(2, MinCut::kSink, 0);
  EXPECT_EQ(cut.solve(), 6);
  cut.grow(more, 2);
  EXPECT_EQ(cut.solve(), 8);
}

}  // namespace
}  // namespace tierpilot::swap
