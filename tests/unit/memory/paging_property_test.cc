// What holds for any heat, any sizes and any start: on seeded random machines.
#include <cmath>
#include <random>

#include "tests/unit/memory/paging_fixture.h"

namespace tierpilot {
namespace {

class PagingProperty : public PagingFixture {
 protected:
  // 20 to 120 chunks of Zipfian heat, anywhere, in two or three groups with budgets.
  void make_machine(uint64_t seed, PagingPolicy policy) {
    random_.seed(seed);
    input = {};
    input.groups = {
        {.name = "a", .policy = policy},
        {.name = "b", .policy = policy, .fast_budget_bytes = pick(1, 20) * kChunkBytes}};
    const uint64_t chunks = pick(20, 120);
    make_tiers({pick(5, 60), chunks * 2, chunks * 2});
    for (uint64_t i = 0; i < chunks; ++i) {
      const size_t tier = input.tiers[0].free_bytes < kChunkBytes ? pick(1, 2) : pick(0, 2);
      const float heat = 500.0F / static_cast<float>(pick(1, 50));
      const size_t other = tier == 0 ? pick(1, 2) : 3 - tier;
      if (pick(0, 3) == 0)
        add_split_chunk(tier, other, heat, pick(0, 1));
      else
        add_chunk(tier, heat, pick(0, 1));
    }
    was_within.assign(2, true);
    if (fast_bytes(1) > *input.groups[1].fast_budget_bytes) was_within[1] = false;
  }

  uint64_t pick(uint64_t low, uint64_t high) {
    return std::uniform_int_distribution<uint64_t>(low, high)(random_);
  }

  std::mt19937_64 random_;
};

TEST_F(PagingProperty, BudgetsCapacitiesAndRateAreNeverExceeded) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    make_machine(seed, PagingPolicy::kHeat);
    input.limits.move_bytes = pick(1, 30) * kChunkBytes;
    for (int round = 0; round < 30; ++round) {
      // As large as a tier is, as much as a round may move: step() checks both.
      step();
      if (fast_bytes(1) <= *input.groups[1].fast_budget_bytes) was_within[1] = true;
      for (auto& chunk : input.chunks) chunk.heat = 500.0F / static_cast<float>(pick(1, 50));
      if (HasFailure()) FAIL() << "seed " << seed;
    }
    EXPECT_LE(fast_bytes(1), *input.groups[1].fast_budget_bytes) << "seed " << seed;
  }
}

TEST_F(PagingProperty, AStableHeatComesToRestAndStaysThere) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    make_machine(seed, PagingPolicy::kHeat);
    input.limits.move_bytes = 10 * kChunkBytes;
    int rounds = 0;
    while (!step().moves.empty()) ASSERT_LT(++rounds, 200) << "seed " << seed;
    // Noise below the hysteresis may tip what was at its edge, once, and nothing to and fro.
    const auto settled = input.chunks;
    for (int round = 0; round < 100; ++round) {
      for (size_t i = 0; i < input.chunks.size(); ++i)
        input.chunks[i].heat = settled[i].heat * (pick(0, 1) == 0 ? 1 : 1.1F);
      const auto plan = step();
      ASSERT_TRUE(round < 50 || plan.moves.empty()) << "seed " << seed << " round " << round;
    }
  }
}

TEST_F(PagingProperty, TheHotSetEndsInTheFastTier) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    random_.seed(seed);
    input = {};
    input.groups = {{.name = "all"}};
    const uint64_t hot = pick(4, 30);
    make_tiers({hot, 400});
    for (uint64_t i = 0; i < hot; ++i) add_chunk(0, 1);
    for (uint64_t i = 0; i < 3 * hot; ++i) add_chunk(1, i % 3 == 0 ? 100 : 1);
    input.limits.move_bytes = 6 * kChunkBytes;
    for (int round = 0; round < 100 && !step().moves.empty(); ++round) {
    }
    EXPECT_DOUBLE_EQ(hot_share(hot), 1) << "seed " << seed;
    // The hot set changes place.
    for (auto& chunk : input.chunks) chunk.heat = chunk.heat > 50 ? 1 : 2;
    for (uint64_t i = 0; i < hot; ++i) input.chunks[i].heat = 100;
    for (int round = 0; round < 100 && !step().moves.empty(); ++round) {
    }
    EXPECT_DOUBLE_EQ(hot_share(hot), 1) << "seed " << seed;
  }
}

// Each tier answers the slower, the larger its share of the accesses: M/M/1-like.
TEST_F(PagingProperty, BalanceStopsWhereLatenciesAreLevel) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    random_.seed(seed);
    input = {};
    input.groups = {{.name = "all", .policy = PagingPolicy::kBalance}};
    make_tiers({400, 400});
    for (int i = 0; i < 300; ++i) add_chunk(pick(0, 1), 1 + static_cast<float>(pick(0, 5)));
    input.limits.move_bytes = 60 * kChunkBytes;
    const double fast_width = 0.6 + 0.01 * static_cast<double>(pick(0, 60));
    const auto respond = [&] {
      double fast = 0, all = 0;
      for (const auto& chunk : input.chunks) {
        fast += chunk.bytes_in(0) > 0 ? chunk.heat : 0;
        all += chunk.heat;
      }
      const double p = fast / all;
      input.tiers[0].loaded_latency_ns = 100 / std::max(1 - p / fast_width, 0.05);
      input.tiers[1].loaded_latency_ns = 200 / std::max(1 - (1 - p) / 1.5, 0.05);
      return std::abs(*input.tiers[0].loaded_latency_ns - *input.tiers[1].loaded_latency_ns) /
             *input.tiers[0].loaded_latency_ns;
    };
    double apart = 1;
    for (int round = 0; round < 60; ++round) {
      apart = respond();
      step();
    }
    EXPECT_LT(respond(), 0.12) << "seed " << seed << " width " << fast_width;
    EXPECT_LT(apart, 0.12) << "seed " << seed;
    uint64_t late = 0;
    for (int round = 0; round < 10; ++round) {
      respond();
      late += step().bytes();
    }
    EXPECT_LE(late, 30 * kChunkBytes) << "seed " << seed << ": it goes on moving";
  }
}

}  // namespace
}  // namespace tierpilot
