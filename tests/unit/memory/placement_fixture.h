// A machine of units and tiers on which plans are carried out at once.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "daemon/memory/placement/plan.h"

namespace tierpilot {

constexpr uint64_t kUnitBytes = 1 << 20;
constexpr uint32_t kUnitPages = kUnitBytes / 4096;

struct PlacementFixture : ::testing::Test {
  // `capacity_units` of each tier, fast to slow.
  void make_tiers(const std::vector<uint64_t>& capacity_units) {
    double latency_ns = 100;
    for (size_t t = 0; t < capacity_units.size(); ++t, latency_ns *= 3)
      input.tiers.push_back({.name = "tier" + std::to_string(t),
                             .nodes = {static_cast<int>(t)},
                             .latency_ns = latency_ns,
                             .capacity_bytes = capacity_units[t] * kUnitBytes,
                             .free_bytes = capacity_units[t] * kUnitBytes});
    input.limits.reserve_share = 0;
  }

  void add_unit(size_t tier, float heat, size_t group = 0) {
    PlacementUnit unit{.group = group,
                       .pid = 1,
                       .start = (input.units.size() + 1) * kUnitBytes,
                       .end = (input.units.size() + 2) * kUnitBytes,
                       .page_bytes = 4096,
                       .heat_known = true,
                       .heat = heat};
    unit.pages_in_tier[tier] = kUnitPages;
    input.units.push_back(unit);
    input.tiers[tier].free_bytes -= kUnitBytes;
  }

  // A unit whose pages are half in one tier and half in another one.
  void add_split_unit(size_t tier, size_t other, float heat, size_t group = 0) {
    add_unit(tier, heat, group);
    auto& unit = input.units.back();
    unit.pages_in_tier[tier] /= 2;
    unit.pages_in_tier[other] += kUnitPages / 2;
    input.tiers[tier].free_bytes += kUnitBytes / 2;
    input.tiers[other].free_bytes -= kUnitBytes / 2;
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
    auto& unit = input.units[move.start / kUnitBytes - 1];
    ASSERT_EQ(unit.start, move.start);
    uint64_t moved = 0;
    for (size_t t = 0; t < input.tiers.size(); ++t) {
      if (t == move.to_tier) continue;
      const uint64_t bytes = unit.bytes_in(t);
      const bool up = move.reason == MoveReason::kHot || move.reason == MoveReason::kLevelUp;
      if (move.reason != MoveReason::kRule && bytes > 0) {
        EXPECT_EQ(t > move.to_tier, up) << "part of the unit goes the other way";
      }
      moved += bytes;
      input.tiers[t].free_bytes += bytes;
      unit.pages_in_tier[move.to_tier] += unit.pages_in_tier[t];
      unit.pages_in_tier[t] = 0;
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
    for (const auto& unit : input.units)
      if (unit.group == group) bytes += unit.bytes_in(0);
    return bytes;
  }

  // Share of the `units` hottest units' bytes that is in the fastest tier.
  double hot_share(size_t units) const {
    auto sorted = input.units;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.heat > b.heat; });
    uint64_t bytes = 0;
    for (size_t i = 0; i < units; ++i) bytes += sorted[i].bytes_in(0);
    return static_cast<double>(bytes) / static_cast<double>(units * kUnitBytes);
  }

  PlacementInput input{
      .tiers = {}, .groups = {{.name = "all"}}, .units = {}, .limits = {}, .balance = {}};
  std::vector<bool> was_within{std::vector<bool>(8, true)};  // by group: a budget may begin broken
};

}  // namespace tierpilot
