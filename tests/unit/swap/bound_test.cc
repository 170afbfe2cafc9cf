// What no plan can be better than: reckoned by hand on a small step, and below every policy.
#include "policies/swap/bound/bound.h"

#include "policies/swap/bound/min_cut.h"
#include "policies/swap/bound/peak.h"
#include "policies/swap/graph_builder.h"
#include "policies/swap/policies.h"
#include "tests/support/long_form.h"
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

// The ladder, but what is read again are views of a and b.
Graph viewed_ladder() {
  GraphBuilder builder;
  const auto call = [&](const char* name, std::vector<std::string> args, NewTensor result,
                        int64_t ns) {
    const NewTensor results[] = {std::move(result)};
    EXPECT_TRUE(builder.call(name, args, results, ns));
  };
  const auto release = [&](std::initializer_list<const char*> names) {
    for (const auto* name : names) EXPECT_TRUE(builder.release(name));
  };
  EXPECT_TRUE(builder.constant("w", 100));
  call("f", {"w"}, {"a", 100}, 10);
  call("view", {"a"}, {.name = "flat", .alias = 0}, 3);
  call("view", {"flat"}, {.name = "turned", .alias = 0}, 4);
  call("f", {"a"}, {"b", 100}, 20);
  release({"a", "flat"});
  call("f", {"b"}, {"c", 100}, 30);
  call("g", {"c"}, {"x", 100}, 40);
  release({"c"});
  call("g", {"x", "b"}, {"y", 100}, 50);
  release({"x", "b"});
  call("g", {"y", "turned"}, {"z", 100}, 60);
  release({"y", "turned"});
  return builder.take("viewed ladder");
}

TEST(Bound, WhatIsMadeAgainIsViewedAgain) {
  const auto graph = viewed_ladder();
  const Limits limits{.budget_bytes = 400};
  // a in 10 ns and both of its views in 7; b alone would take 20.
  const auto least = more_ns(graph, limits);
  EXPECT_LE(least, 17);
  EXPECT_GE(least, 16);
  const auto swap = replay(graph, "swap", {.limits = limits})->outcome;
  EXPECT_EQ(swap.clock_ns - 1 - swap.base_time_ns, 17);
}

void expect_nobody_below(const Graph& graph, const Limits& limits) {
  const auto least = bound(graph, limits);
  for (const auto& policy : policy_infos()) {
    if (policy.name == "bound") continue;
    const auto outcome = replay(graph, policy.name, {.limits = limits})->outcome;
    if (!outcome.done) continue;
    EXPECT_TRUE(least.done) << policy.name << " gets through";
    EXPECT_LE(least.clock_ns, outcome.clock_ns) << policy.name << " " << limits.budget_bytes;
  }
}

TEST(Bound, NoPolicyIsBelowIt) {
  for (uint64_t seed = 1; seed <= test::few_or(1, 4); ++seed)
    for (const bool viewed : {false, true})
      for (const double ratio : {0.8, 0.6, 0.45, 0.3})
        for (const double gb_per_s : {0.0, 3.0, 12.0}) {
          const auto graph = chain(24, seed, viewed);
          const auto peak = static_cast<double>(baseline(graph).peak_bytes);
          expect_nobody_below(graph, {.budget_bytes = static_cast<int64_t>(ratio * peak),
                                      .thrash_limit = 10,
                                      .link = {.gb_per_s = gb_per_s}});
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
