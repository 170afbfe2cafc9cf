#include "policies/sharing/interference/interference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace tierpilot::sharing {
namespace {

Interference untaught() {
  return {core_pair_prior(), measured_gpu_prior()};
}

Sharer job(const std::string& name, UnitKind on = UnitKind::kCores) {
  return {.name = name, .on = on};
}

PaceChange came(std::vector<Sharer> who, double kept) {
  return {std::move(who), {}, std::log(kept), 0.001};
}

TEST(Interference, BeginsWithWhatWasMeasuredElsewhere) {
  auto interference = untaught();
  const auto gpu = interference.beside(job("a", UnitKind::kGpu), job("b", UnitKind::kGpu));
  EXPECT_EQ(gpu.by, KeptBy::kPrior);
  EXPECT_LT(gpu.part(), 1);
  EXPECT_LT(gpu.lower(), gpu.part());
  EXPECT_GT(gpu.lower(), 0.5);
  EXPECT_EQ(interference.beside(job("a"), job("b")).part(), 1);
}

TEST(Interference, LearnsAPairAndSaysWhatFrom) {
  auto interference = untaught();
  for (int i = 0; i < 6; ++i) interference.learn(job("a"), came({job("b")}, 0.6));
  const auto pair = interference.beside(job("a"), job("b"));
  EXPECT_NEAR(pair.part(), 0.6, 0.03);
  EXPECT_EQ(pair.by, KeptBy::kPair);
  EXPECT_EQ(pair.measured, 6U);
  EXPECT_GT(pair.lower(), 0.5);
  const auto own = interference.beside(job("a"), job("c"));
  EXPECT_EQ(own.by, KeptBy::kOwnEffects);
  EXPECT_LT(own.part(), 0.97);
  EXPECT_GT(own.part(), pair.part());
  EXPECT_LT(interference.beside(job("c"), job("d")).part(), 1) << "here all lose something";
}

TEST(Interference, WhoGoesTellsTheSame) {
  auto interference = untaught();
  PaceChange went;
  went.went = {job("b")};
  went.ln = -std::log(0.6);
  went.variance = 0.001;
  for (int i = 0; i < 6; ++i) interference.learn(job("a"), went);
  EXPECT_NEAR(interference.beside(job("a"), job("b")).part(), 0.6, 0.03);
}

TEST(Interference, CoresTellNothingOfGpus) {
  auto interference = untaught();
  const auto before = interference.beside(job("a", UnitKind::kGpu), job("b", UnitKind::kGpu));
  for (int i = 0; i < 6; ++i) interference.learn(job("a"), came({job("b")}, 0.6));
  const auto after = interference.beside(job("a", UnitKind::kGpu), job("b", UnitKind::kGpu));
  EXPECT_EQ(before.part(), after.part());
  EXPECT_EQ(after.by, KeptBy::kPrior);
}

TEST(Interference, OfJobsWithoutANameNothingIsLearned) {
  auto interference = untaught();
  interference.learn(job(""), came({job("b")}, 0.6));
  interference.learn(job("a"), came({job("")}, 0.6));
  EXPECT_EQ(interference.beside(job("a"), job("b")).by, KeptBy::kPrior);
  EXPECT_EQ(interference.beside(job(""), job("")).part(), 1);
}

// What is known of one of two that came together is not blamed on the other.
TEST(Interference, SeveralAtOnceAreDealtWithByWhatIsKnown) {
  auto interference = untaught();
  for (int i = 0; i < 20; ++i) interference.learn(job("a"), came({job("calm")}, 0.97));
  for (int i = 0; i < 20; ++i)
    interference.learn(job("a"), came({job("calm"), job("wild")}, 0.97 * 0.6));
  EXPECT_GT(interference.beside(job("a"), job("calm")).part(), 0.9);
  EXPECT_LT(interference.beside(job("a"), job("wild")).part(), 0.7);
}

TEST(Interference, NothingMakesAJobFasterThanAlone) {
  auto interference = untaught();
  for (int i = 0; i < 6; ++i) interference.learn(job("a"), came({job("b")}, 1.3));
  EXPECT_EQ(interference.beside(job("a"), job("b")).part(), 1);
  EXPECT_LE(interference.beside(job("a"), job("b")).lower(), 1);
}

TEST(Interference, SeveralNeighboursMultiply) {
  auto interference = untaught();
  for (int i = 0; i < 10; ++i) interference.learn(job("a"), came({job("b")}, 0.7));
  const std::vector<Sharer> two{job("b"), job("b")};
  const double one = interference.beside(job("a"), job("b")).part();
  const auto both = interference.beside(job("a"), two);
  EXPECT_NEAR(both.part(), one * one, 1e-9);
  EXPECT_LT(both.lower(), both.part());
  EXPECT_EQ(interference.beside(job("a"), std::span<const Sharer>{}).part(), 1);
}

TEST(PairPrior, WhatIsKnownOfTheTwoCounts) {
  PairPrior prior{.ln = -0.05,
                  .weights = {0, -0.02, -0.1, 0, 0, 0},
                  .means = {15, 20, 0.5, 15, 20, 0.5},
                  .spreads = {}};
  const Sharer unknown, busy{.milli = 1000}, idle{.milli = 100};
  EXPECT_DOUBLE_EQ(prior.ln_kept(unknown, unknown), -0.05);
  EXPECT_DOUBLE_EQ(prior.ln_kept(busy, unknown), -0.1);
  EXPECT_DOUBLE_EQ(prior.ln_kept(idle, busy), -0.01);
  EXPECT_LE(prior.ln_kept({.milli = 1e-9}, unknown), 0) << "nobody is made faster";
  EXPECT_GE(prior.ln_kept({.milli = 1e12}, unknown), -3) << "nor stopped";
}

TEST(PairPrior, IsReadAsItWasWritten) {
  PairPrior prior = measured_gpu_prior();
  prior.weights = {1, 2, 3, 4, 5, 6};
  prior.means = {6, 5, 4, 3, 2, 1};
  const auto again = read_pair_prior(pair_prior_json(prior));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(pair_prior_json(*again), pair_prior_json(prior));
}

TEST(PairPrior, WhatIsNoneIsRefusedWithTheReason) {
  const auto good = pair_prior_json(measured_gpu_prior());
  const auto refused = [&](const char* key, nlohmann::json value) {
    auto bad = good;
    bad[key] = std::move(value);
    const auto read = read_pair_prior(bad);
    EXPECT_FALSE(read) << bad.dump();
    return read ? std::string() : read.error().message;
  };
  EXPECT_NE(refused("spreads", {1, 2, 3}).find("spreads"), std::string::npos);
  refused("spreads", {0.1, 0.1, 0.1, -0.1});
  refused("spreads", {0.1, 0.1, 0.1, 1e9});
  refused("ln", 0.5);
  refused("ln", "much");
  refused("weights", {1, 2});
  refused("means", {1, 2, 3, 4, 5, 6});
  EXPECT_FALSE(read_pair_prior(nlohmann::json("text")));
}

}  // namespace
}  // namespace tierpilot::sharing
