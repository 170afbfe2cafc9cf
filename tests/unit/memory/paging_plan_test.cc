#include <gmock/gmock.h>

#include <ctime>

#include "tests/unit/memory/paging_fixture.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;
using PagingTest = PagingFixture;

// CPU time of this thread for the plan that is quickest of three.
double planning_s(const PagingInput& input) {
  const auto cpu_s = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
  };
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double began_s = cpu_s();
    EXPECT_TRUE(plan_moves(input));
    least = std::min(least, cpu_s() - began_s);
  }
  return least;
}

// Every other chunk in the fast tier, hot and cold alike; `free_chunks` fit into the slow one.
PagingInput mixed_machine(size_t chunks, double free_chunks, PagingPolicy policy, size_t groups) {
  PagingInput input;
  input.tiers = {{.name = "fast", .nodes = {0}, .latency_ns = 100, .loaded_latency_ns = 100},
                 {.name = "slow", .nodes = {1}, .latency_ns = 400, .loaded_latency_ns = 400}};
  input.tiers[1].free_bytes = static_cast<uint64_t>(free_chunks * kChunkBytes);
  for (size_t g = 0; g < groups; ++g)
    input.groups.push_back({.name = std::to_string(g), .policy = policy});
  if (groups > 1)
    for (auto& group : input.groups) group.fast_budget_bytes = chunks / groups / 2 * kChunkBytes;
  for (size_t i = 0; i < chunks; ++i) {
    PagingChunk chunk{.group = i / 2 % groups,
                      .pid = 1,
                      .start = (i + 1) * kChunkBytes,
                      .end = (i + 2) * kChunkBytes,
                      .page_bytes = 4096,
                      .heat_known = true,
                      .heat = 1 + static_cast<float>(i * 7919 % chunks)};
    chunk.pages_in_tier[i % 2] = kChunkPages;
    input.chunks.push_back(chunk);
  }
  return input;
}

// Sixteen times as many: by their square it would take 256 times as long. Beside others, whose data
// push these out of the caches, it took five times as long for each chunk.
TEST(PagingCost, GrowsAboutAsTheChunksDo) {
  for (const auto policy : {PagingPolicy::kHeat, PagingPolicy::kBalance})
    for (const double free_chunks : {0.0, 0.5, 1.0, 1e6})
      for (const size_t groups : {1, 64}) {
        const double few_s = planning_s(mixed_machine(4'096, free_chunks, policy, groups));
        const double many_s = planning_s(mixed_machine(65'536, free_chunks, policy, groups));
        EXPECT_LT(many_s, 120 * few_s) << policy_name(policy) << ", room for " << free_chunks
                                       << " chunks, " << groups << " groups: " << few_s << " s";
      }
}

TEST_F(PagingTest, OneTierHasNothingToMoveAndSaysSo) {
  make_tiers({10});
  add_chunk(0, 5);
  const auto plan = step();
  EXPECT_TRUE(plan.moves.empty());
  EXPECT_THAT(plan.notes.at(0), HasSubstr("nowhere"));
}

TEST_F(PagingTest, RefusesInputThatContradictsItself) {
  make_tiers({10, 10});
  add_chunk(0, 5, 3);
  EXPECT_EQ(plan_moves(input).error().code, ErrorCode::kInvalid);
  input.chunks[0].group = 0;
  input.groups[0] = {.name = "x", .policy = PagingPolicy::kStatic, .static_tier = 2};
  EXPECT_EQ(plan_moves(input).error().code, ErrorCode::kInvalid);
  input.groups[0].static_tier = 1;
  input.chunks[0].end = input.chunks[0].start;
  EXPECT_EQ(plan_moves(input).error().code, ErrorCode::kInvalid);
  input.tiers.resize(kMaxTiers + 1);
  EXPECT_EQ(plan_moves(input).error().code, ErrorCode::kInvalid);
}

TEST_F(PagingTest, HotPagesGoUpWhileThereIsRoom) {
  make_tiers({4, 100});
  for (const float heat : {1.0F, 9.0F, 5.0F, 0.0F}) add_chunk(1, heat);
  const auto plan = step();
  ASSERT_EQ(plan.moves.size(), 3U);
  EXPECT_FLOAT_EQ(plan.moves[0].heat, 9);
  EXPECT_EQ(plan.moves[0].reason, MoveReason::kHot);
  EXPECT_EQ(plan.moves[0].from_tier, 1U);
  EXPECT_DOUBLE_EQ(plan.moves[0].gain_ns_per_s, 9.0 * kChunkPages * 200);
  EXPECT_EQ(input.chunks[3].bytes_in(0), 0U) << "what nobody uses stays where it is";
}

TEST_F(PagingTest, ColdPagesMakeRoomBeforeItIsUsed) {
  make_tiers({2, 100});
  add_chunk(0, 1);
  add_chunk(0, 8);
  add_chunk(1, 4);
  const auto plan = step();
  ASSERT_EQ(plan.moves.size(), 2U);
  EXPECT_EQ(plan.moves[0].reason, MoveReason::kMakeRoom);
  EXPECT_FLOAT_EQ(plan.moves[0].heat, 1);
  EXPECT_LT(plan.moves[0].gain_ns_per_s, 0);
  EXPECT_FLOAT_EQ(plan.moves[1].heat, 4);
}

TEST_F(PagingTest, AStaticGroupAboveItsBudgetGoesDown) {
  make_tiers({10, 100});
  input.groups[0] = {.name = "pinned",
                     .policy = PagingPolicy::kStatic,
                     .fast_budget_bytes = 2 * kChunkBytes,
                     .static_tier = 0};
  was_within[0] = false;
  for (const float heat : {1.0F, 2.0F, 3.0F, 4.0F}) add_chunk(0, heat);
  step();
  EXPECT_EQ(fast_bytes(0), 2 * kChunkBytes);
  EXPECT_TRUE(step().moves.empty()) << "and does not come back";
}

TEST_F(PagingTest, HotterByChanceIsNotWorthASwap) {
  make_tiers({1, 100});
  add_chunk(0, 10);
  add_chunk(1, 30);
  for (auto& chunk : input.chunks) chunk.heat_error = 5;
  EXPECT_TRUE(step().moves.empty()) << "30 is not 4 * hypot(5, 5) above 13";
  for (auto& chunk : input.chunks) chunk.heat_error = 2;
  EXPECT_EQ(step().moves.size(), 2U);
}

TEST_F(PagingTest, LittleHotterIsNotWorthASwap) {
  make_tiers({1, 100});
  add_chunk(0, 10);
  add_chunk(1, 12);
  EXPECT_TRUE(step().moves.empty());
  input.chunks[1].heat = 14;
  EXPECT_EQ(step().moves.size(), 2U);
}

TEST_F(PagingTest, WhatIsNotKnownStays) {
  make_tiers({1, 100});
  add_chunk(0, 0);
  add_chunk(1, 50);
  input.chunks[0].heat_known = false;
  EXPECT_TRUE(step().moves.empty());
}

TEST_F(PagingTest, TheReserveStaysFree) {
  make_tiers({10, 100});
  input.limits.reserve_share = 0.2;
  for (int i = 0; i < 20; ++i) add_chunk(1, 5);
  step();
  EXPECT_EQ(input.tiers[0].free_bytes, 2 * kChunkBytes);
}

TEST_F(PagingTest, AFullSlowTierTakesNothing) {
  make_tiers({1, 1});
  add_chunk(0, 1);
  add_chunk(1, 50);
  EXPECT_TRUE(step().moves.empty());
}

TEST_F(PagingTest, ColdChunksOfSlowMemoryHideNoVictim) {
  make_tiers({1, 100});
  add_chunk(0, 1);
  add_chunk(1, 0);
  add_chunk(1, 9);
  input.chunks[1].heat_error = 5;
  EXPECT_EQ(step().moves.size(), 2U) << "that they may be hot by chance makes no difference";
}

TEST_F(PagingTest, ASmallVictimGoesWhereLargeOnesFindNoRoom) {
  make_tiers({3, 3});
  add_chunk(0, 0);
  add_chunk(0, 1);
  add_chunk(1, 50);
  for (const size_t chunk : {1, 2}) input.chunks[chunk].pages_in_tier[chunk - 1] /= 2;
  input.tiers[0].free_bytes = 0;
  input.tiers[1].free_bytes = kChunkBytes / 2;
  const auto plan = step();
  ASSERT_EQ(plan.moves.size(), 2U);
  EXPECT_FLOAT_EQ(plan.moves[0].heat, 1);
}

TEST_F(PagingTest, EachGroupEvictsItsOwnForItsBudget) {
  make_tiers({100, 100});
  input.groups = {{.name = "a", .fast_budget_bytes = kChunkBytes}, {.name = "b"}};
  add_chunk(0, 1, 0);
  add_chunk(0, 0, 1);
  add_chunk(1, 9, 0);
  const auto plan = step();
  ASSERT_EQ(plan.moves.size(), 2U);
  EXPECT_EQ(plan.moves[0].group, 0U);
  EXPECT_EQ(plan.moves[0].start, input.chunks[0].start);
}

TEST_F(PagingTest, ALoweredBudgetSendsTheColdestDown) {
  make_tiers({100, 100});
  input.groups[0].fast_budget_bytes = 2 * kChunkBytes;
  for (const float heat : {4.0F, 1.0F, 3.0F, 2.0F}) add_chunk(0, heat);
  const auto plan = step();
  ASSERT_EQ(plan.moves.size(), 2U);
  EXPECT_EQ(plan.moves[0].reason, MoveReason::kOverBudget);
  EXPECT_DOUBLE_EQ(hot_share(2), 1);
}

TEST_F(PagingTest, ThreeTiersFillFromTheTop) {
  make_tiers({2, 2, 100});
  for (const float heat : {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}) add_chunk(2, heat);
  for (int i = 0; i < 3; ++i) step();
  const size_t expected[] = {2, 2, 1, 1, 0, 0};
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(input.chunks[i].bytes_in(expected[i]), kChunkBytes) << "chunk " << i;
}

TEST_F(PagingTest, StaticPutsAGroupWhereItsRuleSays) {
  make_tiers({3, 100});
  input.groups = {{.name = "archive", .policy = PagingPolicy::kStatic, .static_tier = 1},
                  {.name = "index",
                   .policy = PagingPolicy::kStatic,
                   .fast_budget_bytes = kChunkBytes,
                   .static_tier = 0}};
  add_chunk(0, 99, 0);
  add_chunk(1, 0, 1);
  add_chunk(1, 0, 1);
  const auto plan = step();
  EXPECT_EQ(plan.moves.size(), 2U);
  EXPECT_EQ(input.chunks[0].bytes_in(1), kChunkBytes);
  EXPECT_EQ(fast_bytes(1), kChunkBytes);
  EXPECT_TRUE(step().moves.empty());
}

TEST_F(PagingTest, BalanceNeedsLoadedLatencies) {
  make_tiers({10, 10});
  input.groups[0].policy = PagingPolicy::kBalance;
  add_chunk(1, 5);
  input.tiers[0].loaded_latency_ns = 100;
  input.tiers[1].loaded_latency_unavailable = "unavailable: not measured";
  const auto plan = step();
  EXPECT_TRUE(plan.moves.empty());
  EXPECT_THAT(plan.notes.at(0), HasSubstr("tier1"));
}

TEST_F(PagingTest, NamesGoBothWays) {
  for (const auto policy : {PagingPolicy::kStatic, PagingPolicy::kHeat, PagingPolicy::kBalance})
    EXPECT_EQ(policy_from_name(policy_name(policy)).value(), policy);
  for (const auto mode : {PagingMode::kObserve, PagingMode::kAdvise, PagingMode::kEnforce})
    EXPECT_EQ(mode_from_name(mode_name(mode)).value(), mode);
  EXPECT_FALSE(policy_from_name("hot"));
  EXPECT_FALSE(mode_from_name(""));
}

}  // namespace
}  // namespace tierpilot
