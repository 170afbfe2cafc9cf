// What jobs on GPUs are thought to keep beside each other before anything is measured, and the laws
// that tell it.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "policies/sharing/interference/interference.h"
#include "policies/sharing/interference/turns.h"
#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/pairs/gpu_parts.h"
#include "policies/sharing/predict/pairs/pair_data.h"
#include "tests/unit/sharing/traces.h"

namespace tierpilot::sharing {
namespace {

Sharer on_gpu(double milli, const std::string& name = "") {
  return {.name = name, .on = UnitKind::kGpu, .milli = milli};
}

double kept(const Sharer& victim, const Sharer& neighbour) {
  return std::exp(measured_gpu_prior().ln_kept(victim, neighbour));
}

TEST(OwnHosts, WhoMostlyWaitsForItsHostLosesNearlyNothing) {
  EXPECT_GT(ln_kept_on_own_hosts(0.1, 0.1), std::log(0.96));
  EXPECT_EQ(ln_kept_on_own_hosts(0, 0), 0);
  EXPECT_EQ(ln_kept_on_own_hosts(0, 1), 0);
}

TEST(OwnHosts, TwoThatNeedOnlyTheGpuKeepHalf) {
  EXPECT_DOUBLE_EQ(std::exp(ln_kept_on_own_hosts(1, 1)), 0.5);
  EXPECT_DOUBLE_EQ(std::exp(ln_kept_on_own_hosts(7, 1)), 0.5) << "nobody is there for longer";
}

TEST(OwnHosts, EachKeepsAsMuchAndLessTheMoreIsUsed) {
  double last = 0.1;
  for (const double part : {0.1, 0.3, 0.6, 0.9}) {
    const double now = ln_kept_on_own_hosts(0.8, part);
    EXPECT_LT(now, last) << part;
    EXPECT_EQ(now, ln_kept_on_own_hosts(part, 0.8));
    last = now;
  }
}

TEST(SharedHost, TwoThatWaitForItKeepHalf) {
  EXPECT_NEAR(std::exp(ln_kept_on_shared_host({1e-9, 0}, {1e-9, 0})), 0.5, 1e-6);
  EXPECT_NEAR(std::exp(ln_kept_on_shared_host({1, 0}, {1, 0})), 0.5, 1e-6);
  EXPECT_GT(ln_kept_on_shared_host({0.95, 0}, {0.05, 0}), std::log(0.9));
}

TEST(SharedHost, WhoHasTheLongerKernelsKeepsMore) {
  const TakesTurns shorter{0.9, 0.01}, longer{0.9, 0.16};
  const auto kept = [](const TakesTurns& victim, const TakesTurns& neighbour) {
    return std::exp(ln_kept_on_shared_host(victim, neighbour));
  };
  EXPECT_GT(kept(longer, shorter), kept(shorter, shorter) + 0.1);
  EXPECT_LT(kept(shorter, longer), kept(shorter, shorter) - 0.1);
  // Of one step those that are longer on the GPU.
  EXPECT_LT(kept({0.6, 0.1}, {1, 0.1}), kept({1, 0.1}, {0.6, 0.1}));
}

TEST(SharedHost, ATimeOfAStepThatOnlyOneTellsSaysNothing) {
  const TakesTurns untold{0.9, 0}, tells{0.9, 1e-3};
  EXPECT_DOUBLE_EQ(ln_kept_on_shared_host(tells, untold), ln_kept_on_shared_host(untold, untold));
  EXPECT_DOUBLE_EQ(ln_kept_on_shared_host(untold, tells), ln_kept_on_shared_host(untold, untold));
}

// Who surely keeps more than half loses nothing beyond it, who surely keeps less what it lacks.
TEST(BeyondHalf, IsTheMeanOverWhatIsUncertain) {
  EXPECT_NEAR(ln_kept_beyond_half(std::log(0.9), 0.1), 0, 1e-6);
  EXPECT_NEAR(ln_kept_beyond_half(std::log(0.2), 0.1), std::log(0.4), 1e-6);
  // Half a standard normal's mean.
  EXPECT_NEAR(ln_kept_beyond_half(std::log(0.5), 0.1), -0.0399, 1e-4);
}

TEST(GpuPrior, WhoMostlyWaitsForItsHostLosesNothing) {
  for (const double milli : {1.0, 100.0, 300.0, 1000.0}) {
    EXPECT_GT(kept(on_gpu(100), on_gpu(milli)), 0.999) << milli;
    EXPECT_GT(kept(on_gpu(milli), on_gpu(100)), 0.999) << milli;
  }
}

TEST(GpuPrior, TwoThatUseTheWholeGpuKeepLessThanABusyOneAndOneThatWaits) {
  const auto busy = on_gpu(950), waiting = on_gpu(100);
  EXPECT_LT(kept(busy, busy), kept(busy, waiting) - 0.02);
  EXPECT_LT(kept(busy, busy), kept(waiting, busy) - 0.02);
  EXPECT_GT(kept(on_gpu(1000), on_gpu(1000)), 0.94) << "half is counted to the share";
}

// The more of the GPU either of the two uses, both of which use more than half.
TEST(GpuPrior, TheMoreIsUsedTheLessIsKept) {
  double last = 1;
  for (const double milli : {500.0, 700.0, 900.0, 1000.0}) {
    const double now = kept(on_gpu(800), on_gpu(milli));
    EXPECT_LE(now, last) << milli;
    last = now;
  }
  EXPECT_LT(last, kept(on_gpu(800), on_gpu(500)));
}

TEST(GpuPrior, UnknownUseGivesTheMeanOfAllPairs) {
  const double mean = std::exp(measured_gpu_prior().ln);
  const auto known = on_gpu(900), unknown = on_gpu(0);
  EXPECT_DOUBLE_EQ(kept(known, unknown), mean);
  EXPECT_DOUBLE_EQ(kept(unknown, known), mean);
  EXPECT_DOUBLE_EQ(kept(unknown, unknown), mean);
}

TEST(GpuPrior, TheLessIsKnownTheLessSureItIs) {
  Interference thinks(core_pair_prior(), measured_gpu_prior());
  const auto known = on_gpu(900), unknown = on_gpu(0);
  EXPECT_LT(thinks.beside(known, known).variance, thinks.beside(known, unknown).variance);
  EXPECT_DOUBLE_EQ(thinks.beside(known, unknown).variance, thinks.beside(unknown, known).variance);
}

TEST(GpuPrior, AbsurdFiguresGiveFiniteOnes) {
  const double absurd[]{1e-300,
                        1e-9,
                        1,
                        1e300,
                        std::numeric_limits<double>::infinity(),
                        std::numeric_limits<double>::quiet_NaN(),
                        -1};
  for (const double a : absurd)
    for (const double b : absurd) {
      const double ln = measured_gpu_prior().ln_kept(on_gpu(a), on_gpu(b));
      ASSERT_TRUE(ln <= 0 && ln >= -3) << a << " " << b << ": " << ln;
    }
}

PaceChange came(const Sharer& who, double part) {
  return {{who}, {}, std::log(part), 0.001};
}

// The pair was measured; that more is known of the two later does not change what it showed.
TEST(GpuPrior, WhatWasMeasuredStaysWhenMoreIsKnownOfTheTwo) {
  auto prior = measured_gpu_prior();
  prior.ln = std::log(0.6);  // much changes by what is known
  const auto now = on_gpu(100, "a"), beside = on_gpu(100, "b");
  ASSERT_GT(prior.ln_kept(now, beside), std::log(0.99));
  Interference thinks(core_pair_prior(), prior);
  for (int i = 0; i < 6; ++i) thinks.learn(on_gpu(0, "a"), came(on_gpu(0, "b"), 0.8));
  EXPECT_NEAR(thinks.beside(now, beside).part(), 0.8, 0.04);
}

// An earlier coordinator knew of no law: what it kept is of the mean of published pairs.
TEST(GpuPrior, WhatAnEarlierCoordinatorMeasuredStays) {
  Interference thinks(core_pair_prior(), measured_gpu_prior());
  const double ln = std::log(0.7) - published_pair_mean().ln;
  thinks.restore({UnitKind::kGpu, "a", "b", {ln, 5000, 8}});
  const auto pair = thinks.beside(on_gpu(950, "a"), on_gpu(950, "b"));
  EXPECT_NEAR(pair.part(), 0.7, 0.03);
  EXPECT_EQ(pair.by, KeptBy::kPair);
}

// What the law says of a pair is not taken for something that one of the two does to all.
TEST(GpuPrior, WhatWasExpectedTellsNothingOfOthers) {
  const auto busy = on_gpu(950, "busy"), waits = on_gpu(50, "waits"), other = on_gpu(950, "other");
  Interference thinks(core_pair_prior(), measured_gpu_prior());
  const double expected = kept(busy, waits), before = kept(busy, other);
  ASSERT_GT(expected, before + 0.02);
  std::vector<LearnedPair> learned;
  for (int i = 0; i < 6; ++i) learned = thinks.learn(busy, came(waits, expected));
  EXPECT_NEAR(thinks.beside(busy, other).part(), before, 0.01);
  // Nor after a restart, when nobody has asked for the pair.
  Interference again(core_pair_prior(), measured_gpu_prior());
  ASSERT_EQ(learned.size(), 1U);
  again.restore(learned[0]);
  EXPECT_NEAR(again.beside(busy, other).part(), before, 0.01);
}

TEST(GpuPrior, ThePairsOfCoresKnowNoLaw) {
  const Sharer busy{.milli = 950}, waits{.milli = 50};
  EXPECT_DOUBLE_EQ(core_pair_prior().ln_kept(busy, waits), core_pair_prior().ln);
  EXPECT_DOUBLE_EQ(core_pair_prior().ln_kept(busy, busy), core_pair_prior().ln);
}

// Whose hosts were shared.
class PublishedPairs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFile)) GTEST_SKIP() << kFile << " is not here";
    auto table = CsvTable::open(kFile);
    ASSERT_TRUE(table);
    auto read = read_pairs(*table);
    ASSERT_TRUE(read) << read.error().message;
    data_ = std::move(*read);
    parts_ = std::make_unique<GpuParts>(data_);
  }
  // By the law alone, no lower bound and no share.
  double off_law(const PairSample& sample) const {
    const auto turns = [&](const PairJob& job) {
      return TakesTurns{parts_->of(sample.card, job).mean, 1 / job.alone};
    };
    return std::log(sample.retained) -
           ln_kept_on_shared_host(turns(sample.victim), turns(sample.neighbour));
  }

  const std::filesystem::path kFile = kTraces / "s3_gavel_pairs.csv";
  PairData data_;
  std::unique_ptr<GpuParts> parts_;
};

TEST_F(PublishedPairs, AreSoFarOffTheLaw) {
  double squares = 0;
  for (const auto& sample : data_.samples) squares += std::pow(off_law(sample), 2);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(data_.samples.size())), 0.15, 0.005);
}

// Standard deviations of what a prior leaves over, of victims, neighbours and pairs, by maximum
// likelihood (expectation and maximisation in turn).
EffectSpreads spreads_of(const PairData& data, const std::vector<double>& off) {
  using Key = std::tuple<std::string, std::string, double>;
  struct Owns {
    std::map<Key, double> ln;
    double variance = 0.005;
  };
  Owns owns[2];
  std::vector<Key> keys[2];
  for (const auto& sample : data.samples) {
    keys[0].emplace_back(sample.card, sample.victim.model, sample.victim.batch);
    keys[1].emplace_back(sample.card, sample.neighbour.model, sample.neighbour.batch);
  }
  const auto count = static_cast<double>(off.size());
  double mean = 0, of_pair = 0.005;
  for (const auto& key : keys[0]) owns[0].ln[key] = owns[1].ln[key] = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 2; ++i) {
      std::map<Key, std::pair<double, double>> sums;  // and how many
      for (size_t row = 0; row < off.size(); ++row) {
        auto& [sum, rows] = sums[keys[i][row]];
        sum += off[row] - mean - owns[1 - i].ln[keys[1 - i][row]];
        rows += 1;
      }
      double squares = 0;
      for (auto& [key, ln] : owns[i].ln) {
        const auto& [sum, rows] = sums[key];
        const double weight = rows / of_pair + 1 / std::max(owns[i].variance, 1e-12);
        ln = sum / of_pair / weight;
        squares += ln * ln + 1 / weight;
      }
      owns[i].variance = squares / static_cast<double>(owns[i].ln.size());
    }
    double sum = 0, squares = 0;
    const auto left = [&](size_t row) {
      return off[row] - owns[0].ln[keys[0][row]] - owns[1].ln[keys[1][row]];
    };
    for (size_t row = 0; row < off.size(); ++row) sum += left(row);
    mean = sum / count;
    for (size_t row = 0; row < off.size(); ++row) squares += std::pow(left(row) - mean, 2);
    of_pair = squares / (count + 2 - 2 * static_cast<double>(owns[0].ln.size()));
  }
  return {0, std::sqrt(owns[0].variance), std::sqrt(owns[1].variance), std::sqrt(of_pair)};
}

TEST_F(PublishedPairs, SpreadsAreWhatTheirMeanLeavesOver) {
  const auto wanted = published_pair_mean();
  std::vector<double> off;
  for (const auto& sample : data_.samples)
    off.push_back(std::log(kept_beyond_half(sample)) - wanted.ln);
  const auto is = spreads_of(data_, off);
  EXPECT_NEAR(is.victim, wanted.spreads.victim, 0.002);
  EXPECT_NEAR(is.neighbour, wanted.spreads.neighbour, 0.002);
  EXPECT_NEAR(is.pair, wanted.spreads.pair, 0.002);
}

// What live jobs begin with is of hosts of their own: closer than the mean of these pairs, and
// further off than the law of a shared host.
TEST_F(PublishedPairs, OfCardsAndModelsNeverSeenTheLawsAreCloserThanTheirMean) {
  std::map<std::string, double> errors;
  for (const auto& study : beyond_half_studies(data_, pair_studies(data_).front().splits))
    for (const auto& score : run_study(study).scores)
      if (score.split == "card and models")
        errors[study.target + ": " + score.contender] = score.error;
  const double mean = errors.at("kept beyond half: mean");
  EXPECT_LT(errors.at("kept beyond half: shared host"), 0.6 * mean);
  EXPECT_LT(errors.at("kept beyond half: default"), 0.75 * mean);
  EXPECT_GT(errors.at("kept beyond half: default"), errors.at("kept beyond half: shared host"));
  EXPECT_LT(errors.at("ln of kept beyond half: shared host"),
            0.8 * errors.at("ln of kept beyond half: mean"));
}

}  // namespace
}  // namespace tierpilot::sharing
