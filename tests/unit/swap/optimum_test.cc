// What integer programming finds: by hand on the smallest steps, and nothing below it by any plan.
#include "policies/swap/optimum/optimum.h"

#include <gtest/gtest.h>

#include "tests/support/long_form.h"
#include "tests/unit/swap/chain.h"
#include "tests/unit/swap/ladder.h"
#include "tests/unit/swap/logs.h"

namespace tierpilot::swap {
namespace {

Limits limits_for(const Graph& graph, double ratio) {
  const auto peak = static_cast<double>(baseline(graph).peak_bytes);
  return {.budget_bytes = static_cast<int64_t>(ratio * peak), .thrash_limit = 100};
}

TEST(Optimum, IsWhatIsReckonedByHand) {
  const auto graph = ladder();
  // w, a, b, c and x: all is kept.
  auto found = replay_optimum(graph, {.budget_bytes = 500}).outcome;
  ASSERT_TRUE(found.done) << found.reason;
  EXPECT_EQ(found.counts.recomputed_ns, 0);
  EXPECT_LE(found.peak_bytes, 500);
  // One less: a goes while c is made or x is, and is made again for z.
  found = replay_optimum(graph, {.budget_bytes = 400}).outcome;
  ASSERT_TRUE(found.done) << found.reason;
  EXPECT_EQ(found.counts.recomputed_ns, 10);
  EXPECT_EQ(found.clock_ns, 1 + 210 + 10);
  // w and three: b needs a, c needs b, y needs x and b, so that b is made again from a beside x.
  found = replay_optimum(graph, {.budget_bytes = 300}).outcome;
  EXPECT_FALSE(found.done) << "x, b and y are there at once, beside w";
  EXPECT_NE(found.reason.find("fits"), std::string::npos) << found.reason;
}

TEST(Optimum, NoPlanIsBelowIt) {
  for (uint64_t seed = 1; seed <= test::few_or(1, 3); ++seed) {
    const auto graph = chain(8, seed);
    for (const double ratio : {0.75, 0.65}) {
      const auto limits = limits_for(graph, ratio);
      const auto best = replay_optimum(graph, limits);
      for (const auto* policy : {"swap", "swap-quick", "h_DTR", "h_MSPS", "belady"}) {
        const auto other = replay(graph, policy, {.limits = limits});
        ASSERT_TRUE(other);
        if (!other->outcome.done) continue;
        ASSERT_TRUE(best.outcome.done) << policy << " gets through: " << best.outcome.reason;
        EXPECT_EQ(best.origin, "proven");
        EXPECT_LE(best.outcome.clock_ns, other->outcome.clock_ns) << policy;
      }
    }
  }
}

TEST(Optimum, TheWholePeakCostsNothing) {
  const auto graph = chain(6, 5);
  const auto found = replay_optimum(graph, limits_for(graph, 1)).outcome;
  ASSERT_TRUE(found.done) << found.reason;
  EXPECT_EQ(found.overhead(), 1);
}

TEST(Optimum, KeepsToTheThrashLimitAsAllDo) {
  const auto graph = ladder();
  const auto found = [&](double limit) {
    return replay_optimum(graph, {.budget_bytes = 400, .thrash_limit = limit}).outcome;
  };
  EXPECT_TRUE(found(1.05).done) << "10 of 210 ns are computed again";
  EXPECT_FALSE(found(1.04).done);
  EXPECT_NE(found(1.04).reason.find("thrashing"), std::string::npos) << found(1.04).reason;
}

TEST(Optimum, KnowsViewsAndWhatIsChangedInPlace) {
  const auto graph = example();
  const auto peak = baseline(graph).peak_bytes;
  const auto whole = replay_optimum(graph, {.budget_bytes = peak}).outcome;
  ASSERT_TRUE(whole.done) << whole.reason;
  EXPECT_EQ(whole.counts.recomputations, 0);
  const auto none = replay_optimum(graph, {.budget_bytes = peak / 3}).outcome;
  EXPECT_FALSE(none.done);
}

TEST(Optimum, SaysWhatIsTooLarge) {
  const auto found = replay_optimum(chain(40, 1), {.budget_bytes = 1 << 20}).outcome;
  EXPECT_FALSE(found.done);
  EXPECT_NE(found.reason.find("80"), std::string::npos) << found.reason;
}

}  // namespace
}  // namespace tierpilot::swap
