// What a plan promises: no worse than a rival, within the budget, the same each time.
#include <algorithm>

#include "policies/swap/policies.h"
#include "tests/unit/swap/chain.h"
#include "tests/unit/swap/logs.h"

namespace tierpilot::swap {
namespace {

Outcome outcome_of(const Graph& graph, std::string_view policy, double ratio,
                   const Link& link = {}) {
  const auto budget = static_cast<int64_t>(ratio * static_cast<double>(baseline(graph).peak_bytes));
  const auto replayed = replay(graph, policy, {.limits = {.budget_bytes = budget, .link = link}});
  EXPECT_TRUE(replayed.has_value());
  if (replayed->outcome.done) EXPECT_LE(replayed->outcome.peak_bytes, budget) << policy;
  return replayed->outcome;
}

TEST(Planner, IsNotWorseThanAnyRival) {
  for (const uint64_t seed : {1, 2, 3}) {
    const auto graph = chain(24, seed);
    for (const double ratio : {0.7, 0.5, 0.35}) {
      const auto own = outcome_of(graph, "swap", ratio);
      for (const auto* rival : {"h_DTR", "h_DTR_eq", "h_DTR_local", "h_LRU", "h_size", "h_MSPS"}) {
        const auto other = outcome_of(graph, rival, ratio);
        if (!other.done) continue;
        EXPECT_TRUE(own.done) << rival << " gets through at " << ratio;
        EXPECT_LE(own.clock_ns, other.clock_ns) << rival << " at " << ratio;
      }
    }
  }
}

TEST(Planner, BeatsTheBestScoreOnALongChain) {
  const auto graph = chain(60, 4);
  const auto own = outcome_of(graph, "swap", 0.5);
  ASSERT_TRUE(own.done) << own.reason;
  EXPECT_LT(own.clock_ns, outcome_of(graph, "h_DTR", 0.5).clock_ns);
}

TEST(Planner, TheWholePeakCostsNothing) {
  EXPECT_EQ(outcome_of(chain(20, 5), "swap", 1).overhead(), 1);
}

TEST(Planner, AFastLinkCostsNextToNothing) {
  const auto graph = chain(40, 6);
  const auto alone = outcome_of(graph, "swap", 0.6);
  const auto linked = outcome_of(graph, "swap", 0.6, {.gb_per_s = 1e5});
  ASSERT_TRUE(linked.done) << linked.reason;
  EXPECT_GT(linked.counts.swaps_in, 0);
  EXPECT_LE(linked.clock_ns, alone.clock_ns);
  EXPECT_LT(linked.overhead(), 1.02);
}

// One that has not the time for all of it, but for a part.
TEST(Planner, ASlowLinkStillSavesSomeRecomputing) {
  for (const uint64_t seed : {11, 12, 13}) {
    const auto graph = chain(60, seed);
    const Link link{.gb_per_s = 10};
    for (const auto* policy : {"swap", "swap-quick"}) {
      const auto alone = outcome_of(graph, policy, 0.4);
      const auto linked = outcome_of(graph, policy, 0.4, link);
      ASSERT_TRUE(linked.done) << policy << seed;
      EXPECT_LT(linked.clock_ns, alone.clock_ns) << policy << seed;
      EXPECT_GT(linked.counts.swaps_in, 0) << policy << seed;
      EXPECT_GT(linked.counts.recomputations, 0) << policy << seed;
      EXPECT_LT(linked.clock_ns, outcome_of(graph, "swap-all", 0.4, link).clock_ns);
    }
  }
}

// Where recomputing needs no more than a storage's own operator, plans come near what is possible.
TEST(Planner, ComesNearTheBoundOverALink) {
  for (const uint64_t seed : {21, 22, 23}) {
    const auto graph = chain(60, seed);
    const Link link{.gb_per_s = 10};
    const double least = outcome_of(graph, "bound", 0.5, link).overhead();
    const double own = outcome_of(graph, "swap", 0.5, link).overhead();
    EXPECT_GT(least, 1);
    EXPECT_LT(own - 1, 1.5 * (least - 1)) << seed;
  }
}

TEST(Planner, SameStepSamePlan) {
  const auto graph = chain(30, 7);
  EXPECT_EQ(outcome_of(graph, "swap", 0.5).clock_ns, outcome_of(graph, "swap", 0.5).clock_ns);
}

TEST(Planner, SaysWhatDoesNotFit) {
  const auto outcome = outcome_of(chain(10, 8), "swap", 0.01);
  EXPECT_FALSE(outcome.done);
  EXPECT_NE(outcome.reason.find("needs"), std::string::npos) << outcome.reason;
}

TEST(Policies, UnknownNamesAreAnsweredWithTheKnown) {
  const auto replayed = replay(chain(3, 1), "h_none", {});
  ASSERT_FALSE(replayed);
  EXPECT_NE(replayed.error().message.find("h_DTR_eq"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot::swap
