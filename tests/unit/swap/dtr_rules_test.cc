// The worked example of the rules of Dynamic Tensor Rematerialization: what it has to give.
#include "policies/swap/graph_builder.h"
#include "policies/swap/machine/step_run.h"
#include "policies/swap/policies.h"
#include "policies/swap/scores.h"
#include "tests/unit/swap/logs.h"

namespace tierpilot::swap {
namespace {

Outcome replay(const Graph& graph, const char* score, int64_t budget_bytes) {
  ScoredEviction manager(graph, *score_by_name(score), 1);
  return run_step(graph, {.budget_bytes = budget_bytes}, manager);
}

constexpr const char* kScores[] = {"h_DTR", "h_DTR_eq", "h_DTR_local", "h_LRU", "h_size", "h_MSPS"};

TEST(DtrRules, Baseline) {
  const auto base = baseline(example());
  EXPECT_EQ(base.peak_bytes, 4900);
  EXPECT_EQ(base.time_ns, 172);
}

// Time is taken by recomputing alone, so it is that of the same draws.
TEST(DtrRules, AllOfARandomScoreAreMeansOfTheSameDraws) {
  GraphBuilder builder;
  const auto call = [&](std::vector<std::string> args, const std::string& made, int64_t bytes,
                        int64_t ns) {
    const NewTensor results[] = {{made, bytes}};
    EXPECT_TRUE(builder.call("f", args, results, ns));
  };
  const auto name = [](int at) { return "x" + std::to_string(at); };
  EXPECT_TRUE(builder.constant("x0", 10));
  for (int at = 1; at <= 12; ++at) call({name(at - 1)}, name(at), 100, at * at);
  for (int at = 12; at > 0; --at) {
    const auto made = "g" + std::to_string(at);
    call({name(at)}, made, 10, 5);
    EXPECT_TRUE(builder.release(name(at)));
    EXPECT_TRUE(builder.release(made));
  }
  const auto graph = builder.take("chain");
  const Limits limits{.budget_bytes = 700};
  const auto replayed = replay(graph, "h_rand", ReplaySettings{.limits = limits});
  ASSERT_TRUE(replayed && replayed->outcome.done);
  const auto& outcome = replayed->outcome;
  EXPECT_EQ(replayed->runs, 10);
  EXPECT_GT(outcome.counts.recomputed_ns, 0);
  EXPECT_EQ(outcome.clock_ns - 1, outcome.base_time_ns + outcome.counts.recomputed_ns);
  EXPECT_GT(outcome.counts.evictions, 0);
  EXPECT_LE(outcome.peak_bytes, limits.budget_bytes);
}

// For searches: what cannot end in time is not replayed to its end, and nothing else changes.
TEST(DtrRules, AReplayIsGivenUpOnlyWhereItCannotEndInTime) {
  const auto graph = example();
  const auto clock_ns = [&](int64_t give_up_ns) {
    ScoredEviction manager(graph, *score_by_name("h_DTR"), 1);
    const auto outcome = run_step(graph, {.budget_bytes = 4899, .give_up_ns = give_up_ns}, manager);
    return outcome.done ? outcome.clock_ns : 0;
  };
  EXPECT_EQ(clock_ns(256), 255);
  EXPECT_EQ(clock_ns(255), 0);
}

TEST(DtrRules, AScoreMayLookAtSoManyCandidatesOnly) {
  const auto graph = example();
  for (const int64_t looks : {0, 100}) {
    ScoredEviction manager(graph, *score_by_name("h_DTR"), 1);
    manager.set_most_looks(looks);
    EXPECT_EQ(run_step(graph, {.budget_bytes = 4899}, manager).done, looks > 0);
  }
}

TEST(DtrRules, TheWholePeakRecomputesNothing) {
  const auto graph = example();
  for (const auto* score : kScores) {
    const auto outcome = replay(graph, score, 4900);
    EXPECT_TRUE(outcome.done) << score << outcome.reason;
    EXPECT_EQ(outcome.counts.recomputations, 0) << score;
    EXPECT_EQ(outcome.peak_bytes, 4900) << score;
  }
}

TEST(DtrRules, OneByteLess) {
  const auto graph = example();
  for (const auto* score : {"h_DTR", "h_DTR_eq", "h_DTR_local", "h_LRU"}) {
    const auto outcome = replay(graph, score, 4899);
    ASSERT_TRUE(outcome.done) << score << outcome.reason;
    EXPECT_EQ(outcome.clock_ns, 255) << score;
    EXPECT_DOUBLE_EQ(outcome.overhead(), 254.0 / 172) << score;
    EXPECT_EQ(outcome.peak_bytes, 4800) << score;
    EXPECT_EQ(outcome.counts.recomputations, 3) << score;
  }
  for (const auto* score : {"h_size", "h_MSPS"}) {
    const auto outcome = replay(graph, score, 4899);
    EXPECT_FALSE(outcome.done) << score;
    EXPECT_NE(outcome.reason.find("out of memory"), std::string::npos) << outcome.reason;
  }
}

TEST(DtrRules, FailsAtTheEndAndAtTheLastOperator) {
  const auto graph = example();
  for (const auto* score : kScores) {
    const auto late = replay(graph, score, 4500);
    EXPECT_FALSE(late.done) << score;
    EXPECT_GT(late.clock_ns, 172) << score << ": the program itself gets through";
    const auto early = replay(graph, score, 4400);
    EXPECT_FALSE(early.done) << score;
    EXPECT_LT(early.clock_ns, 172) << score;
    EXPECT_NE(early.reason.find("'mix'"), std::string::npos) << early.reason;
  }
}

}  // namespace
}  // namespace tierpilot::swap
