// What a plan promises: no worse than a rival, within the budget, the same each time.
#include <algorithm>

#include "policies/swap/graph_builder.h"
#include "policies/swap/machine/step_run.h"
#include "policies/swap/planned_eviction.h"
#include "policies/swap/policies.h"
#include "tests/support/long_form.h"
#include "tests/unit/swap/chain.h"
#include "tests/unit/swap/logs.h"
#include "tests/unit/swap/skipping.h"

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

constexpr int64_t kState = 65'536, kInput = 131'072, kWeight = 524'288;

// Cells of one weight, whose gradients are summed up cell by cell.
Graph recurrent(int cells) {
  GraphBuilder builder;
  const auto call = [&](const char* name, const std::vector<std::string>& args,
                        const std::string& out, int64_t bytes) {
    const NewTensor results[] = {{out, bytes}};
    EXPECT_TRUE(builder.call(name, args, results, 6000));
  };
  const auto release = [&](const std::string& gone) { EXPECT_TRUE(builder.release(gone)); };
  EXPECT_TRUE(builder.constant("w", kWeight));
  EXPECT_TRUE(builder.constant("x", kInput));
  call("zeros", {"x"}, "h0", kState);
  for (int at = 1; at <= cells; ++at) {
    const auto cell = std::to_string(at);
    call("cat", {"x", "h" + std::to_string(at - 1)}, "in" + cell, kInput);
    call("addmm", {"in" + cell, "w"}, "z" + cell, kState);
    call("tanh", {"z" + cell}, "h" + cell, kState);
    release("z" + cell);
  }
  builder.backward();
  std::string gradient = "h" + std::to_string(cells), sum;
  for (int at = cells; at >= 1; --at) {
    const auto cell = std::to_string(at);
    call("tanh_backward", {gradient, "h" + cell}, "ds" + cell, kState);
    if (at < cells) release(gradient);
    release("h" + cell);
    gradient = "di" + cell;
    call("mm", {"ds" + cell, "w"}, gradient, kInput);
    call("mm", {"ds" + cell, "in" + cell}, "dw" + cell, kWeight);
    call("sum", {"ds" + cell}, "db" + cell, 1024);
    for (const auto* gone : {"in", "ds", "db"}) release(gone + cell);
    if (!sum.empty()) {
      call("add", {sum, "dw" + cell}, "sum" + cell, kWeight);
      release(sum);
      release("dw" + cell);
      sum = "sum" + cell;
    } else {
      sum = "dw" + cell;
    }
  }
  release(gradient);
  return builder.take("recurrent");
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

TEST(Planner, IsNotWorseThanAQuickOne) {
  for (uint64_t seed = 1; seed <= test::few_or(1, 6); ++seed)
    for (const bool viewed : {false, true})
      for (const double ratio : {0.6, 0.45, 0.3})
        for (const double gb_per_s : {0.0, 6.0}) {
          const auto graph = chain(30, seed, viewed);
          const auto quick = outcome_of(graph, "swap-quick", ratio, {.gb_per_s = gb_per_s});
          const auto thorough = outcome_of(graph, "swap", ratio, {.gb_per_s = gb_per_s});
          if (!quick.done) continue;
          EXPECT_TRUE(thorough.done) << seed << " at " << ratio;
          EXPECT_LE(thorough.clock_ns, quick.clock_ns) << seed << " at " << ratio;
        }
}

// Layers that read all earlier ones at once, where memory is so tight that no fast score gets
// through.
TEST(Planner, AQuickOneGetsThroughWhereASlowScoreDoes) {
  const auto graph = read_dtr_log(DENSE_LOG);
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  const ReplaySettings settings{.limits = {.budget_bytes = 407'520'030}};
  for (const auto* policy : {"h_MSPS", "swap-quick"}) {
    const auto replayed = replay(*graph, policy, settings);
    ASSERT_TRUE(replayed.has_value());
    EXPECT_TRUE(replayed->outcome.done) << policy << ": " << replayed->outcome.reason;
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

TEST(Planner, ALinkNeverMakesItSlower) {
  for (uint64_t seed = 41; seed < 41 + test::few_or(1, 4); ++seed) {
    const auto graph = skipping(40, 2, seed);
    for (const double ratio : {0.7, 0.5, 0.4}) {
      const auto alone = outcome_of(graph, "swap", ratio);
      for (const Link& link :
           {Link{.gb_per_s = 12, .latency_ns = 1'000'000}, Link{.gb_per_s = 1}}) {
        const auto linked = outcome_of(graph, "swap", ratio, link);
        EXPECT_GE(linked.done, alone.done) << seed << " " << ratio;
        if (alone.done) EXPECT_LE(linked.clock_ns, alone.clock_ns) << seed << " " << ratio;
      }
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

// Beside the sum of a weight's gradients there is room for one gradient of a state, not for the one
// of a cell's input: that is made again from what the program has released by then.
TEST(Planner, ARecurrentNetGetsThroughWhereSumsOfGradientsLeaveLittleRoom) {
  const auto graph = recurrent(60);
  const int64_t budget = kWeight + kInput + 3 * kWeight + kState + kState / 2;
  for (const auto& [policy, most] : {std::pair("swap", 1.6), std::pair("swap-quick", 1.75)}) {
    const ReplaySettings settings{
        .limits = {.budget_bytes = budget, .link = {.gb_per_s = 12, .latency_ns = 10'000}}};
    const auto outcome = replay(graph, policy, settings)->outcome;
    ASSERT_TRUE(outcome.done) << policy << ": " << outcome.reason;
    EXPECT_LE(outcome.peak_bytes, budget) << policy;
    EXPECT_LT(outcome.overhead(), most) << policy;
  }
}

// What is made again may read a storage before the plan brings it back.
TEST(PlannedEviction, ACopyThatIsNeededEarlierStaysUntilItIsRead) {
  GraphBuilder builder;
  const auto call = [&](const char* name, const std::vector<std::string>& args, const char* out,
                        int64_t bytes = 10) {
    const NewTensor results[] = {{out, bytes}};
    EXPECT_TRUE(builder.call(name, args, results, 1000));
  };
  EXPECT_TRUE(builder.constant("in", 1));
  call("first", {"in"}, "a");
  call("second", {"a"}, "b");
  call("third", {"in"}, "c", 20);  // and b has to leave
  call("fourth", {"c"}, "d");
  call("fifth", {"b", "d"}, "e");
  call("sixth", {"e"}, "f");
  call("seventh", {"f"}, "g");
  call("eighth", {"a", "g"}, "h");
  for (const auto* gone : {"a", "b", "c", "d", "e", "f", "g"}) EXPECT_TRUE(builder.release(gone));
  const auto graph = builder.take("early");
  const Timetable timetable(graph);
  Plan plan{.absences = std::vector<std::vector<Absence>>(graph.storages.size())};
  plan.absences[1] = {{1, 7, Action::kSwap}};       // a
  plan.absences[2] = {{1, 4, Action::kRecompute}};  // b, which reads it at 4
  const Limits limits{.budget_bytes = 31, .link = {.gb_per_s = 1}};
  PlannedEviction manager(graph, timetable, plan, limits.link, Following::kStrict);
  const auto outcome = run_step(graph, limits, manager);
  ASSERT_TRUE(outcome.done) << outcome.reason;
  EXPECT_EQ(outcome.counts.recomputations, 1);
}

TEST(Planner, SameStepSamePlan) {
  const auto graph = chain(30, 7);
  EXPECT_EQ(outcome_of(graph, "swap", 0.5).clock_ns, outcome_of(graph, "swap", 0.5).clock_ns);
}

TEST(Planner, WhereNothingGetsThroughItComesAsFarAsAnyRival) {
  const auto ran_ns = [](const Outcome& outcome) {
    return outcome.clock_ns - outcome.counts.recomputed_ns - outcome.counts.stall_ns;
  };
  for (const uint64_t seed : {31, 32, 33}) {
    const auto graph = chain(60, seed);
    const auto own = outcome_of(graph, "swap", 0.12);
    EXPECT_FALSE(own.done);
    for (const auto* rival : {"h_DTR", "h_DTR_eq", "h_LRU", "h_MSPS"})
      EXPECT_GE(ran_ns(own), ran_ns(outcome_of(graph, rival, 0.12))) << rival << seed;
  }
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
