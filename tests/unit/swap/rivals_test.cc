// What the replayed rivals promise: within the budget, the same each time, and a clear reason where
// they cannot.
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/swap/policies.h"
#include "policies/swap/published_replay.h"
#include "tests/unit/swap/chain.h"

namespace tierpilot::swap {
namespace {

constexpr const char* kRivals[] = {"swap-all",   "vdnn",   "vdnn-all",   "capuchin",
                                   "checkpoint", "belady", "q-published"};
constexpr Link kFast{.gb_per_s = 1e5}, kPcie{.gb_per_s = 12, .latency_ns = 10'000};

Outcome checked_outcome_of(const Graph& graph, std::string_view policy, double ratio,
                           const Link& link = {}) {
  const auto budget = static_cast<int64_t>(ratio * static_cast<double>(baseline(graph).peak_bytes));
  const auto replayed = replay(graph, policy, {.limits = {.budget_bytes = budget, .link = link}});
  EXPECT_TRUE(replayed.has_value());
  if (replayed->outcome.done) {
    EXPECT_LE(replayed->outcome.peak_bytes, budget) << policy << " at " << ratio;
    EXPECT_GE(replayed->outcome.overhead(), 1) << policy << " at " << ratio;
  } else {
    EXPECT_FALSE(replayed->outcome.reason.empty()) << policy << " at " << ratio;
  }
  return replayed->outcome;
}

// Layers of one size and time; every second one is a convolution.
Graph convolutions(size_t layers, bool marked = true) {
  GraphBuilder builder;
  const auto must = [](const Status& status) { ASSERT_TRUE(status) << status.error().message; };
  must(builder.constant("a0", 1000));
  for (size_t at = 0; at < layers; ++at) {
    const std::string args[] = {"a" + std::to_string(at)};
    const NewTensor results[] = {{"a" + std::to_string(at + 1), 1000}};
    must(builder.call(at % 2 == 1 ? "Conv2d" : "tanh", args, results, 1000));
  }
  if (marked) builder.backward();
  std::string gradient = "a" + std::to_string(layers);
  for (size_t at = layers; at-- > 0;) {
    const auto kept = "a" + std::to_string(at), out = "g" + std::to_string(at);
    const std::string args[] = {gradient, kept};
    const NewTensor results[] = {{out, 1000}};
    must(builder.call("backward", args, results, 2000));
    must(builder.release(gradient));
    if (at > 0) must(builder.release(kept));
    gradient = out;
  }
  return builder.take("convolutions");
}

TEST(Rivals, StayWithinTheBudgetAndDoTheSameAgain) {
  for (const auto& graph : {chain(30, 1), chain(30, 2), convolutions(30)})
    for (const auto* rival : kRivals)
      for (const double ratio : {1.0, 0.7, 0.5, 0.3, 0.1})
        for (const auto& link : {Link{}, kFast, kPcie}) {
          const auto once = checked_outcome_of(graph, rival, ratio, link);
          const auto again = checked_outcome_of(graph, rival, ratio, link);
          EXPECT_EQ(once.done, again.done);
          EXPECT_EQ(once.clock_ns, again.clock_ns);
          EXPECT_EQ(once.reason, again.reason);
          EXPECT_EQ(once.counts.bytes_out, again.counts.bytes_out);
        }
}

TEST(Rivals, SayWhatATooSmallBudgetLacks) {
  for (const auto* rival : kRivals) {
    const auto outcome = checked_outcome_of(convolutions(20), rival, 0.05, kPcie);
    EXPECT_FALSE(outcome.done) << rival;
    EXPECT_NE(outcome.reason.find("out of memory: "), std::string::npos) << outcome.reason;
    EXPECT_NE(outcome.reason.find(" needs "), std::string::npos) << outcome.reason;
  }
}

TEST(Rivals, ThoseThatSwapAskForALink) {
  for (const auto* rival : {"swap-all", "vdnn", "vdnn-all", "q-published"}) {
    const auto outcome = checked_outcome_of(convolutions(20), rival, 0.5);
    EXPECT_FALSE(outcome.done) << rival;
    EXPECT_NE(outcome.reason.find("--bandwidth"), std::string::npos) << outcome.reason;
  }
}

TEST(Rivals, EveryoneGetsThroughHalfThePeakOverAFastLink) {
  for (const auto* rival : {"swap-all", "vdnn-all", "capuchin", "belady", "q-published"}) {
    const auto outcome = checked_outcome_of(convolutions(40), rival, 0.5, kFast);
    ASSERT_TRUE(outcome.done) << rival << ": " << outcome.reason;
    EXPECT_GT(outcome.counts.swaps_in, 0) << rival;
    EXPECT_EQ(outcome.counts.recomputations, 0) << rival;
    EXPECT_LT(outcome.overhead(), 1.05) << rival;
  }
}

TEST(Rivals, VdnnSwapsInputsOfConvolutionsOnly) {
  const auto graph = convolutions(20);
  const auto some = checked_outcome_of(graph, "vdnn", 1, kFast);
  const auto all = checked_outcome_of(graph, "vdnn-all", 1, kFast);
  ASSERT_TRUE(some.done && all.done) << some.reason << all.reason;
  // The input is a constant, and what the last layer reads and makes is used again at once.
  EXPECT_EQ(some.counts.swaps_out, 9);
  EXPECT_EQ(all.counts.swaps_out, 18);
}

TEST(Rivals, VdnnSaysThatThereIsNoConvolution) {
  const auto outcome = checked_outcome_of(chain(10, 1), "vdnn", 1, kFast);
  EXPECT_FALSE(outcome.done);
  EXPECT_NE(outcome.reason.find("vdnn-all"), std::string::npos) << outcome.reason;
}

TEST(Rivals, CheckpointingRunsTheForwardPassAtMostOnceMore) {
  const auto graph = convolutions(64);
  const auto outcome = checked_outcome_of(graph, "checkpoint", 0.4);
  ASSERT_TRUE(outcome.done) << outcome.reason;
  EXPECT_GT(outcome.counts.recomputations, 0);
  EXPECT_LE(outcome.counts.recomputations, 64);
  EXPECT_EQ(outcome.counts.swaps_out, 0);
}

TEST(Rivals, CheckpointsStayThoughTheProgramLetsGoOfThem) {
  // Layers that keep something of their own and whose outputs the backward pass does not read.
  GraphBuilder builder;
  constexpr int kLayers = 49;
  ASSERT_TRUE(builder.constant("a0", 10));
  for (int at = 0; at < kLayers; ++at) {
    const std::string args[] = {"a" + std::to_string(at)};
    const NewTensor results[] = {{"a" + std::to_string(at + 1), 10},
                                 {"kept" + std::to_string(at), 1000}};
    ASSERT_TRUE(builder.call("f", args, results, 1000));
    if (at > 0) ASSERT_TRUE(builder.release(args[0]));
  }
  builder.backward();
  for (int at = kLayers; at-- > 0;) {
    const std::string args[] = {at + 1 == kLayers ? "a49" : "g" + std::to_string(at + 1),
                                "kept" + std::to_string(at)};
    const NewTensor results[] = {{"g" + std::to_string(at), 10}};
    ASSERT_TRUE(builder.call("b", args, results, 2000));
    for (const auto& gone : args) ASSERT_TRUE(builder.release(gone));
  }
  const auto graph = builder.take("kept");
  const auto outcome = checked_outcome_of(graph, "checkpoint", 0.3);
  ASSERT_TRUE(outcome.done) << outcome.reason;
  EXPECT_LE(outcome.counts.recomputations, 2 * kLayers);
  EXPECT_LE(checked_outcome_of(graph, "swap", 0.3).clock_ns, outcome.clock_ns);
}

TEST(Rivals, ThePlannerIsNotWorseThanCheckpointingOrCapuchin) {
  for (const auto& graph : {chain(40, 5), convolutions(40)})
    for (const double ratio : {0.7, 0.5, 0.35})
      for (const auto& link : {Link{}, kPcie})
        for (const auto* rival : {"checkpoint", "capuchin"}) {
          const auto other = checked_outcome_of(graph, rival, ratio, link);
          if (!other.done) continue;
          const auto own = checked_outcome_of(graph, "swap", ratio, link);
          ASSERT_TRUE(own.done) << rival << " gets through at " << ratio;
          EXPECT_LE(own.clock_ns, other.clock_ns) << rival << " at " << ratio;
        }
}

TEST(Rivals, CheckpointingNeedsToKnowTheBackwardPass) {
  const auto outcome = checked_outcome_of(convolutions(10, false), "checkpoint", 1);
  EXPECT_FALSE(outcome.done);
  EXPECT_NE(outcome.reason.find("backward pass begins"), std::string::npos) << outcome.reason;
}

TEST(Rivals, CapuchinRecomputesWhereALinkIsSlow) {
  const auto graph = convolutions(40);
  const auto slow = checked_outcome_of(graph, "capuchin", 0.6, {.gb_per_s = 1e-3});
  ASSERT_TRUE(slow.done) << slow.reason;
  EXPECT_GT(slow.counts.recomputations, 0);
  const auto alone = checked_outcome_of(graph, "capuchin", 0.6);
  ASSERT_TRUE(alone.done) << alone.reason;
  EXPECT_EQ(alone.counts.swaps_out, 0);
}

TEST(Rivals, CapuchinLeavesAloneWhatFits) {
  const auto outcome = checked_outcome_of(chain(30, 3), "capuchin", 1, kPcie);
  ASSERT_TRUE(outcome.done) << outcome.reason;
  EXPECT_EQ(outcome.overhead(), 1);
}

TEST(Rivals, BeladyMovesNoMoreThanSwappingAll) {
  const auto graph = convolutions(40);
  const auto belady = checked_outcome_of(graph, "belady", 0.6, kFast);
  const auto all = checked_outcome_of(graph, "swap-all", 0.6, kFast);
  ASSERT_TRUE(belady.done && all.done) << belady.reason << all.reason;
  EXPECT_LT(belady.counts.bytes_out, all.counts.bytes_out);
}

TEST(Rivals, ThePublishedTableIsNotWorseThanItsFirstPlan) {
  for (const uint64_t seed : {1, 2, 3}) {
    const auto graph = chain(30, seed);
    const auto all = checked_outcome_of(graph, "swap-all", 0.7, kPcie);
    const auto learned = checked_outcome_of(graph, "q-published", 0.7, kPcie);
    if (!all.done) continue;
    ASSERT_TRUE(learned.done) << learned.reason;
    EXPECT_LE(learned.clock_ns, all.clock_ns);
  }
}

// Pre-training on a part of the data: the training on all of it starts where that ended.
TEST(Rivals, ThePublishedLearnerStartsFromThePlanThatAnotherRunKept) {
  const auto graph = chain(30, 1);
  Limits limits{.budget_bytes = baseline(graph).peak_bytes, .link = kPcie};
  PublishedReplay first(graph, limits, 1);
  const auto everything = first.plan();
  EXPECT_EQ(std::count(everything.begin(), everything.end(), 0), 0);
  while (first.plan() == everything) first.round();
  PublishedReplay second(graph, limits, 2, first.plan());
  EXPECT_EQ(second.plan(), first.plan());
  EXPECT_LT(second.round().counts.swaps_out,
            PublishedReplay(graph, limits, 2).round().counts.swaps_out);
}

}  // namespace
}  // namespace tierpilot::swap
