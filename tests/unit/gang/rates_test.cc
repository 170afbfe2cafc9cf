// Failure rates against fleets whose causes are known. Seeds from 101 on were never tuned on.
#include <gtest/gtest.h>

#include "policies/gang/rates/rate_trial.h"
#include "tests/unit/gang/fleets.h"

namespace tierpilot::gang {
namespace {

constexpr uint64_t kFirstSeed = 101;
constexpr uint64_t kSeeds = 3;
constexpr double kChance = 0.01;  // by which two equally good rankings differ on such fleets

struct Means {
  double auc = 0, best = 0, coverage = 0;
};

Means trials_of(Cause cause) {
  Means means;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kSeeds; ++seed) {
    const auto trial = try_rates(FleetMaker(cause, seed).make(), 0.5);
    EXPECT_TRUE(trial.has_value());
    double best = 0;
    for (const auto& simple : trial->simple) best = std::max(best, simple.auc);
    means.auc += trial->model.auc / kSeeds;
    means.best += best / kSeeds;
    means.coverage += trial->coverage / kSeeds;
  }
  std::printf("[ figures  ] AUC %.4f, of the best simple one %.4f, coverage %.3f\n", means.auc,
              means.best, means.coverage);
  return means;
}

class RatesOf : public testing::TestWithParam<Cause> {};

TEST_P(RatesOf, ForetellNoWorseThanTheBestSimpleOneAndKnowHowWell) {
  const Means means = trials_of(GetParam());
  // On fleets where nothing matters the best of several coins is above one half.
  const double luck =
      GetParam() == Cause::kNothing || GetParam() == Cause::kBursts ? 0.04 : kChance;
  EXPECT_GE(means.auc, means.best - luck);
  EXPECT_GE(means.coverage, 0.85);
  EXPECT_LE(means.coverage, 0.95);
}

INSTANTIATE_TEST_SUITE_P(Causes, RatesOf,
                         testing::Values(Cause::kNothing, Cause::kGroups, Cause::kUnits,
                                         Cause::kBursts, Cause::kRepairs, Cause::kHeavyTails,
                                         Cause::kNodes));

TEST(Rates, ManyGroupsTogetherTellMoreThanAnyOne) {
  const Means means = trials_of(Cause::kGroups);
  EXPECT_GT(means.auc, means.best + 0.03);
}

TEST(Rates, SeeNothingWhereThereIsNothing) {
  const auto trial = try_rates(FleetMaker(Cause::kNothing, kFirstSeed).make(), 0.5);
  ASSERT_TRUE(trial.has_value());
  EXPECT_NEAR(trial->foretold, static_cast<double>(trial->failures_after),
              0.25 * static_cast<double>(trial->failures_after));
}

TEST(Rates, NothingOfTheRestIsLookedAt) {
  auto fleet = FleetMaker(Cause::kUnits, kFirstSeed).make();
  const auto before = fleet_rates(fleet, choose_rates(fleet, 200), 200, 100);
  std::erase_if(fleet.failures, [](const auto& failure) { return failure.day >= 200; });
  const auto after = fleet_rates(fleet, choose_rates(fleet, 200), 200, 100);
  ASSERT_EQ(before.rates.size(), after.rates.size());
  for (size_t i = 0; i < after.rates.size(); ++i)
    EXPECT_DOUBLE_EQ(before.rates[i].per_day, after.rates[i].per_day);
}

TEST(Rates, ATrialWithoutFailuresAfterTheSplitIsRefused) {
  auto fleet = FleetMaker(Cause::kUnits, kFirstSeed).make();
  std::erase_if(fleet.failures, [](const auto& failure) { return failure.day >= 200; });
  EXPECT_EQ(try_rates(fleet, 0.5).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace tierpilot::gang
