// The law that live jobs on GPUs begin with, held against the tables of pairs that come with
// Tierpilot, whose jobs had hosts of their own; and where its figures come from.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "policies/sharing/interference/pair_prior.h"
#include "policies/sharing/predict/pairs/pair_law.h"

namespace tierpilot::sharing {
namespace {

using Samples = std::vector<PairSample>;
using KeptOfPair = std::function<double(const PairSample&)>;

Samples read(const char* file) {
  auto table = CsvTable::open(std::filesystem::path(MEASURED) / file).value();
  return read_pairs(table).value().samples;
}

const Samples& on_h100() {
  static const Samples kSamples = read("pairs-h100.csv");
  return kSamples;
}

const Samples& on_h200() {
  static const Samples kSamples = read("pairs-h200.csv");
  return kSamples;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double variance(std::vector<double> values) {
  const double middle = mean(values);
  for (auto& value : values) value = std::pow(value - middle, 2);
  return mean(values);
}

double error(const Samples& samples, const KeptOfPair& kept) {
  std::vector<double> off;
  for (const auto& sample : samples) off.push_back(std::abs(kept(sample) - sample.retained));
  return mean(off);
}

double median_error(const Samples& samples) {
  std::vector<double> kept;
  for (const auto& sample : samples) kept.push_back(sample.retained);
  std::nth_element(kept.begin(), kept.begin() + static_cast<ptrdiff_t>(kept.size() / 2),
                   kept.end());
  return error(samples, [&](const PairSample&) { return kept[kept.size() / 2]; });
}

double ln_by_law(const PairSample& sample) {
  return ln_kept_on_own_hosts(sample.victim.milli / 1000, sample.neighbour.milli / 1000);
}

double by_law(const PairSample& sample) {
  return std::exp(ln_by_law(sample));
}

TEST(MeasuredPairs, OnTheH200TheLawIsWithinTheGoalAndAThirdCloserThanTheMedian) {
  const double median = median_error(on_h200());
  const auto by_kernels = [](const PairSample& sample) {
    return std::exp(ln_kept_on_own_hosts(sample.victim.traced_milli / 1000,
                                         sample.neighbour.traced_milli / 1000));
  };
  for (const auto& law : {KeptOfPair(by_law), KeptOfPair(by_kernels)}) {
    EXPECT_LT(error(on_h200(), law), kRetainedGoal);
    EXPECT_LT(error(on_h200(), law), median * 2 / 3);
  }
}

double chosen_root(const Samples& samples) {
  double best = 0, least = 1;
  for (int eighths = 2; eighths <= 16; ++eighths) {
    const double root = eighths / 8.0;
    const double off = error(samples, [&](const PairSample& sample) {
      return 1 / (1 + std::pow(sample.victim.milli * sample.neighbour.milli / 1'000'000, root));
    });
    if (off < least) {
      least = off;
      best = root;
    }
  }
  return best;
}

// Of eighths; so the law of one card is held against the other's pairs, which had no say in it.
TEST(MeasuredPairs, TheRootThatIsChosenOnOneCardIsTheOthersToo) {
  EXPECT_EQ(chosen_root(on_h100()), 0.75);
  EXPECT_EQ(chosen_root(on_h200()), 0.75);
  EXPECT_NEAR(by_law({.victim = {.milli = 300}, .neighbour = {.milli = 500}}),
              1 / (1 + std::pow(0.15, 0.75)), 1e-9);
  EXPECT_LT(error(on_h100(), by_law), 0.8 * median_error(on_h100()));
}

TEST(MeasuredPairs, HadNoHostInCommon) {
  for (const auto* samples : {&on_h100(), &on_h200()})
    EXPECT_GT(error(*samples,
                    [](const PairSample& sample) {
                      return std::exp(ln_kept_on_shared_host(sample, sample.victim.milli,
                                                             sample.neighbour.milli));
                    }),
              0.2);
}

TEST(MeasuredPairs, SideBySideTheyKeepMoreThanTheLawSays) {
  std::vector<double> more;
  for (const auto& sample : read("pairs-h200-mps.csv"))
    more.push_back(sample.retained - by_law(sample));
  EXPECT_GT(mean(more), 0.05);
}

TEST(MeasuredPairs, ThePriorsMeanIsThatBeyondHalfOfTheH100s) {
  std::vector<double> ln;
  for (const auto& sample : on_h100()) ln.push_back(std::log(kept_beyond_half(sample)));
  EXPECT_NEAR(mean(ln), measured_gpu_prior().ln, 0.002);
  for (const auto& sample : on_h200()) EXPECT_EQ(kept_beyond_half(sample), 1);
}

// One direction of all tells nothing of the others.
Samples usual(Samples samples) {
  std::erase_if(samples, [](const PairSample& sample) {
    return std::abs(std::log(sample.retained) - ln_by_law(sample)) > 1;
  });
  return samples;
}

std::vector<double> ln_off(const Samples& samples) {
  std::vector<double> off;
  for (const auto& sample : samples) off.push_back(std::log(sample.retained) - ln_by_law(sample));
  return off;
}

// -2 ln of how likely it is to be so far off, with one mean of all that is not known (restricted
// maximum likelihood, by Cholesky's factors).
double unlikely(const Samples& samples, const std::vector<double>& off,
                const EffectSpreads& spreads) {
  const size_t n = samples.size();
  std::vector<std::vector<double>> root(n, std::vector<double>(n, 0));
  std::vector<double> ones(n), scaled(n);
  double logs = 0, of_ones = 0, of_both = 0, of_off = 0;
  const auto square = [](double value) { return value * value; };
  for (size_t i = 0; i < n; ++i) {
    ones[i] = 1;
    scaled[i] = off[i];
    for (size_t j = 0; j <= i; ++j) {
      double sum = i == j ? square(spreads.pair) : 0;
      if (samples[i].victim.model == samples[j].victim.model) sum += square(spreads.victim);
      if (samples[i].neighbour.model == samples[j].neighbour.model)
        sum += square(spreads.neighbour);
      for (size_t k = 0; k < j; ++k) sum -= root[i][k] * root[j][k];
      root[i][j] = i == j ? std::sqrt(sum) : sum / root[j][j];
      if (i == j) continue;
      ones[i] -= root[i][j] * ones[j];
      scaled[i] -= root[i][j] * scaled[j];
    }
    ones[i] /= root[i][i];
    scaled[i] /= root[i][i];
    logs += 2 * std::log(root[i][i]);
    of_ones += square(ones[i]);
    of_both += ones[i] * scaled[i];
    of_off += square(scaled[i]);
  }
  return logs + std::log(of_ones) + of_off - square(of_both) / of_ones;
}

EffectSpreads likeliest(const Samples& samples) {
  const auto off = ln_off(samples);
  constexpr double kStep = 0.01;
  EffectSpreads best;
  double least = INFINITY;
  for (int victim = 0; victim <= 14; ++victim)
    for (int neighbour = 0; neighbour <= 10; ++neighbour)
      for (int pair = 4; pair <= 14; ++pair) {
        const EffectSpreads spreads{0, victim * kStep, neighbour * kStep, pair * kStep};
        const double now = unlikely(samples, off, spreads);
        if (now >= least) continue;
        least = now;
        best = spreads;
      }
  return best;
}

TEST(MeasuredPairs, SpreadsAreWhatTheLawLeavesOver) {
  const auto prior = measured_gpu_prior().spreads;
  ASSERT_EQ(usual(on_h100()).size() + 1, on_h100().size());
  ASSERT_EQ(usual(on_h200()).size(), on_h200().size());
  for (const auto* samples : {&on_h100(), &on_h200()}) {
    const auto is = likeliest(usual(*samples));
    EXPECT_NEAR(is.victim, prior.victim, 0.011);
    EXPECT_NEAR(is.neighbour, prior.neighbour, 0.031);
    EXPECT_NEAR(is.pair, prior.pair, 0.011);
    const double all = std::hypot(prior.victim, prior.neighbour, prior.pair);
    EXPECT_NEAR(std::sqrt(variance(ln_off(usual(*samples)))), all, 0.015);
  }
}

TEST(MeasuredPairs, WithoutTheLawSoMuchMoreIsUncertain) {
  const auto more = [](const Samples& samples) {
    std::vector<double> kept;
    for (const auto& sample : samples) kept.push_back(std::log(sample.retained));
    return variance(kept) - variance(ln_off(samples));
  };
  EXPECT_NEAR(more(usual(on_h100())), measured_gpu_prior().without_law, 0.0005);
  EXPECT_GT(more(on_h200()), measured_gpu_prior().without_law);
}

}  // namespace
}  // namespace tierpilot::sharing
