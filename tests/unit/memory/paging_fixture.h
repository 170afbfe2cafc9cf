// A machine of chunks and tiers on which plans are carried out at once.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "daemon/memory/paging/plan.h"

namespace tierpilot {

constexpr uint64_t kChunkBytes = 1 << 20;
constexpr uint32_t kChunkPages = kChunkBytes / 4096;

struct PagingFixture : ::testing::Test {
  // `capacity_chunks` of each tier, fast to slow.
  void make_tiers(const std::vector<uint64_t>& capacity_chunks) {
    double latency_ns = 100;
    for (size_t t = 0; t < capacity_chunks.size(); ++t, latency_ns *= 3)
      input.tiers.push_back({.name = "tier" + std::to_string(t),
                             .nodes = {static_cast<int>(t)},
                             .latency_ns = latency_ns,
                             .capacity_bytes = capacity_chunks[t] * kChunkBytes,
                             .free_bytes = capacity_chunks[t] * kChunkBytes});
    input.limits.reserve_share = 0;
  }

  void add_chunk(size_t tier, float heat, size_t group = 0) {
    PagingChunk chunk{.group = group,
                      .pid = 1,
                      .start = (input.chunks.size() + 1) * kChunkBytes,
                      .end = (input.chunks.size() + 2) * kChunkBytes,
                      .page_bytes = 4096,
                      .heat_known = true,
                      .heat = heat};
    chunk.pages_in_tier[tier] = kChunkPages;
    input.chunks.push_back(chunk);
    input.tiers[tier].free_bytes -= kChunkBytes;
  }

  // A chunk whose pages are half in one tier and half in another one.
  void add_split_chunk(size_t tier, size_t other, float heat, size_t group = 0) {
    add_chunk(tier, heat, group);
    auto& chunk = input.chunks.back();
    chunk.pages_in_tier[tier] /= 2;
    chunk.pages_in_tier[other] += kChunkPages / 2;
    input.tiers[tier].free_bytes += kChunkBytes / 2;
    input.tiers[other].free_bytes -= kChunkBytes / 2;
  }

  // Makes the plan and carries it out, checking each promise on the way.
  MovePlan step() {
    auto plan = plan_moves(input);
    EXPECT_TRUE(plan.has_value()) << (plan ? "" : plan.error().message);
    if (!plan) return {};
    EXPECT_LE(plan->bytes(), input.limits.move_bytes);
    for (const auto& move : plan->moves) apply(move);
    input.balance = plan->balance;
    check_budgets();
    return *plan;
  }

  void apply(const PageMove& move) {
    auto& chunk = input.chunks[move.start / kChunkBytes - 1];
    ASSERT_EQ(chunk.start, move.start);
    uint64_t moved = 0;
    for (size_t t = 0; t < input.tiers.size(); ++t) {
      if (t == move.to_tier) continue;
      const uint64_t bytes = chunk.bytes_in(t);
      const bool up = move.reason == MoveReason::kHot || move.reason == MoveReason::kLevelUp;
      if (move.reason != MoveReason::kRule && bytes > 0) {
        EXPECT_EQ(t > move.to_tier, up) << "part of the chunk goes the other way";
      }
      moved += bytes;
      input.tiers[t].free_bytes += bytes;
      chunk.pages_in_tier[move.to_tier] += chunk.pages_in_tier[t];
      chunk.pages_in_tier[t] = 0;
    }
    EXPECT_EQ(moved, move.bytes);
    ASSERT_LE(moved, input.tiers[move.to_tier].free_bytes) << "a tier overflows in mid-plan";
    input.tiers[move.to_tier].free_bytes -= moved;
  }

  void check_budgets() const {
    for (size_t g = 0; g < input.groups.size(); ++g) {
      if (!was_within[g]) continue;
      EXPECT_LE(fast_bytes(g), input.groups[g].fast_budget_bytes.value_or(UINT64_MAX));
    }
  }

  uint64_t fast_bytes(size_t group) const {
    uint64_t bytes = 0;
    for (const auto& chunk : input.chunks)
      if (chunk.group == group) bytes += chunk.bytes_in(0);
    return bytes;
  }

  // Share of the `chunks` hottest chunks' bytes that is in the fastest tier.
  double hot_share(size_t chunks) const {
    auto sorted = input.chunks;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.heat > b.heat; });
    uint64_t bytes = 0;
    for (size_t i = 0; i < chunks; ++i) bytes += sorted[i].bytes_in(0);
    return static_cast<double>(bytes) / static_cast<double>(chunks * kChunkBytes);
  }

  PagingInput input{
      .tiers = {}, .groups = {{.name = "all"}}, .chunks = {}, .limits = {}, .balance = {}};
  std::vector<bool> was_within{std::vector<bool>(8, true)};  // by group: a budget may begin broken
};

}  // namespace tierpilot
