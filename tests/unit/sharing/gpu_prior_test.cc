// What jobs on GPUs are thought to keep beside each other before anything is measured.
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

namespace tierpilot::sharing {
namespace {

Sharer on_gpu(double milli, double iteration_s = 0, const std::string& name = "") {
  return {.name = name, .on = UnitKind::kGpu, .milli = milli, .iteration_s = iteration_s};
}

double kept(const Sharer& victim, const Sharer& neighbour) {
  return std::exp(published_pair_prior().ln_kept(victim, neighbour));
}

TEST(GpuPrior, TwoThatUseTheWholeGpuKeepLessThanABusyOneAndOneThatWaits) {
  for (const double step_s : {0.0, 0.1}) {
    const auto busy = on_gpu(950, step_s), waiting = on_gpu(100, step_s);
    EXPECT_LT(kept(busy, busy), kept(busy, waiting) - 0.02) << step_s;
    EXPECT_LT(kept(busy, busy), kept(waiting, busy) - 0.02) << step_s;
  }
}

// The more of the GPU either of the two uses, both of which use more than half.
TEST(GpuPrior, TheMoreIsUsedTheLessIsKept) {
  double last = 1;
  for (const double milli : {500.0, 700.0, 900.0, 1000.0}) {
    const double now = kept(on_gpu(800, 0.1), on_gpu(milli, 0.1));
    EXPECT_LE(now, last) << milli;
    last = now;
  }
}

TEST(GpuPrior, WhoHasTheLongerKernelsKeepsMore) {
  const auto shorter = on_gpu(900, 0.01), longer = on_gpu(900, 0.16);
  EXPECT_GT(kept(longer, shorter), 0.95);
  EXPECT_LT(kept(shorter, longer), kept(shorter, shorter) - 0.1);
  // Of one step those that are longer on the GPU.
  EXPECT_LT(kept(on_gpu(600, 0.1), on_gpu(1000, 0.1)), kept(on_gpu(1000, 0.1), on_gpu(600, 0.1)));
}

TEST(GpuPrior, UnknownUseGivesTheMeanOfAllPairs) {
  const auto prior = published_pair_prior();
  const double mean = std::exp(prior.ln);
  const auto known = on_gpu(900, 0.1), unknown = on_gpu(0, 0.001);
  EXPECT_DOUBLE_EQ(kept(known, unknown), mean);
  EXPECT_DOUBLE_EQ(kept(unknown, known), mean);
  EXPECT_DOUBLE_EQ(kept(unknown, unknown), mean);
}

TEST(GpuPrior, ATimeOfAStepThatOnlyOneTellsSaysNothing) {
  const auto untold = on_gpu(900), tells = on_gpu(900, 1e-3);
  EXPECT_DOUBLE_EQ(kept(tells, untold), kept(untold, untold));
  EXPECT_DOUBLE_EQ(kept(untold, tells), kept(untold, untold));
}

TEST(GpuPrior, TheLessIsKnownTheLessSureItIs) {
  Interference thinks(core_pair_prior(), published_pair_prior());
  const auto all = on_gpu(900, 0.1), no_steps = on_gpu(900), nothing = on_gpu(0);
  EXPECT_LT(thinks.beside(all, all).variance, thinks.beside(no_steps, all).variance);
  EXPECT_LT(thinks.beside(no_steps, all).variance, thinks.beside(all, nothing).variance);
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
    for (const double b : absurd)
      for (const double c : absurd)
        for (const double d : absurd) {
          const double ln = published_pair_prior().ln_kept(on_gpu(a, b), on_gpu(c, d));
          ASSERT_TRUE(ln <= 0 && ln >= -3) << a << " " << b << " " << c << " " << d << ": " << ln;
        }
}

PaceChange came(const Sharer& who, double part) {
  return {{who}, {}, std::log(part), 0.001};
}

// The pair was measured; that more is known of the two later does not change what it showed.
TEST(GpuPrior, WhatWasMeasuredStaysWhenMoreIsKnownOfTheTwo) {
  const auto before = on_gpu(0, 0, "a"), neighbour = on_gpu(0, 0, "b");
  const auto now = on_gpu(950, 0.001, "a"), beside = on_gpu(950, 1, "b");
  ASSERT_LT(kept(now, beside), 0.6);
  Interference thinks(core_pair_prior(), published_pair_prior());
  for (int i = 0; i < 6; ++i) thinks.learn(before, came(neighbour, 0.9));
  EXPECT_NEAR(thinks.beside(now, beside).part(), 0.9, 0.04);
}

// An earlier coordinator knew of no law: what it kept is of the mean.
TEST(GpuPrior, WhatAnEarlierCoordinatorMeasuredStays) {
  Interference thinks(core_pair_prior(), published_pair_prior());
  const double ln = std::log(0.7) - published_pair_mean().ln;
  thinks.restore({UnitKind::kGpu, "a", "b", {ln, 5000, 8}});
  const auto pair = thinks.beside(on_gpu(950, 0.001, "a"), on_gpu(950, 1, "b"));
  EXPECT_NEAR(pair.part(), 0.7, 0.03);
  EXPECT_EQ(pair.by, KeptBy::kPair);
}

// What the law says of a pair is not taken for something that one of the two does to all.
TEST(GpuPrior, WhatWasExpectedTellsNothingOfOthers) {
  const auto short_steps = on_gpu(950, 0.001, "short"), long_steps = on_gpu(950, 1, "long"),
             other = on_gpu(950, 0.001, "other");
  Interference thinks(core_pair_prior(), published_pair_prior());
  const double expected = kept(short_steps, long_steps), before = kept(short_steps, other);
  std::vector<LearnedPair> learned;
  for (int i = 0; i < 6; ++i) learned = thinks.learn(short_steps, came(long_steps, expected));
  EXPECT_NEAR(thinks.beside(short_steps, other).part(), before, 0.01);
  // Nor after a restart, when nobody has asked for the pair.
  Interference again(core_pair_prior(), published_pair_prior());
  ASSERT_EQ(learned.size(), 1U);
  again.restore(learned[0]);
  EXPECT_NEAR(again.beside(short_steps, other).part(), before, 0.01);
}

TEST(GpuPrior, ThePairsOfCoresKnowNoLaw) {
  const Sharer busy{.milli = 950, .iteration_s = 0.001}, slow{.milli = 950, .iteration_s = 1};
  EXPECT_DOUBLE_EQ(core_pair_prior().ln_kept(busy, slow), core_pair_prior().ln);
}

// Where the figures of the prior come from.
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
  double part(const PairSample& sample, const PairJob& job) const {
    return parts_->of(sample.card, job).mean;
  }
  // By the law alone, no lower bound and no share.
  double off_law(const PairSample& sample, bool with_steps) const {
    const auto turns = [&](const PairJob& job) {
      return TakesTurns{part(sample, job), with_steps ? 1 / job.alone : 0};
    };
    return std::log(sample.retained) -
           ln_kept_in_turns(turns(sample.victim), turns(sample.neighbour));
  }
  double off_prior(const PairSample& sample, bool with_use, bool with_steps) const {
    const auto sharer = [&](const PairJob& job) {
      return on_gpu(with_use ? part(sample, job) * 1000 : 0, with_steps ? 1 / job.alone : 0);
    };
    return std::log(kept_beyond_half(sample)) -
           published_pair_prior().ln_kept(sharer(sample.victim), sharer(sample.neighbour));
  }

  const std::filesystem::path kFile = std::filesystem::path(TRACES) / "s3_gavel_pairs.csv";
  PairData data_;
  std::unique_ptr<GpuParts> parts_;
};

TEST_F(PublishedPairs, AreSoFarOffTheLaw) {
  for (const auto& [with_steps, deviation] : {std::pair{true, 0.15}, {false, 0.225}}) {
    double squares = 0;
    for (const auto& sample : data_.samples) squares += std::pow(off_law(sample, with_steps), 2);
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(data_.samples.size())), deviation, 0.005);
  }
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

double variance(const EffectSpreads& spreads) {
  return std::pow(spreads.victim, 2) + std::pow(spreads.neighbour, 2) + std::pow(spreads.pair, 2);
}

TEST_F(PublishedPairs, SpreadsAreWhatThePriorLeavesOver) {
  const auto left = [&](bool with_use, bool with_steps) {
    std::vector<double> off;
    for (const auto& sample : data_.samples) off.push_back(off_prior(sample, with_use, with_steps));
    return spreads_of(data_, off);
  };
  const auto near = [](const EffectSpreads& is, const EffectSpreads& wanted) {
    EXPECT_NEAR(is.victim, wanted.victim, 0.002);
    EXPECT_NEAR(is.neighbour, wanted.neighbour, 0.002);
    EXPECT_NEAR(is.pair, wanted.pair, 0.002);
  };
  const auto prior = published_pair_prior();
  const auto by_law = left(true, true), without_steps = left(true, false),
             mean = left(false, false);
  near(by_law, prior.spreads);
  near(mean, published_pair_mean().spreads);
  EXPECT_NEAR(variance(without_steps) - variance(by_law), prior.without_steps, 0.0003);
  EXPECT_NEAR(variance(mean) - variance(by_law), prior.without_law, 0.0003);
}

TEST_F(PublishedPairs, OfCardsAndModelsNeverSeenThePriorIsCloserThanTheirMean) {
  std::map<std::string, double> errors;
  for (const auto& study : beyond_half_studies(data_, pair_studies(data_).front().splits))
    for (const auto& score : run_study(study).scores)
      if (score.split == "card and models")
        errors[study.target + ": " + score.contender] = score.error;
  EXPECT_LT(errors.at("kept beyond half: default"), 0.6 * errors.at("kept beyond half: mean"));
  EXPECT_LT(errors.at("ln of kept beyond half: default"),
            0.8 * errors.at("ln of kept beyond half: mean"));
}

}  // namespace
}  // namespace tierpilot::sharing
