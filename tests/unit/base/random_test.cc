#include "base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace tierpilot {
namespace {

TEST(DerivedSeed, DiffersByPurposeAndBySeed) {
  std::set<uint64_t> seeds;
  for (uint64_t seed = 0; seed < 1000; ++seed)
    for (const char* purpose : {"workload", "failures", "policy"})
      seeds.insert(derived_seed(seed, purpose));
  EXPECT_EQ(seeds.size(), 3000u);
}

TEST(DerivedSeed, IsTheSameEverywhere) {
  static_assert(derived_seed(1, "workload") == derived_seed(1, "workload"));
  EXPECT_EQ(derived_seed(0, ""), 0xf52a15e9a9b5e89b);
}

TEST(DerivedSeed, StreamsOfOneSeedAreNotRelated) {
  SeededRandom a(derived_seed(1, "workload")), b(derived_seed(1, "failures"));
  double together = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) together += (a.unit() - 0.5) * (b.unit() - 0.5);
  // The variance of a product of two is 1/144.
  EXPECT_LT(std::abs(together / kDraws), 5 / 12.0 / std::sqrt(kDraws));
}

}  // namespace
}  // namespace tierpilot
