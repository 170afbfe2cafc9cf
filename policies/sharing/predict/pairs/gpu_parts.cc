#include "policies/sharing/predict/pairs/gpu_parts.h"

#include <algorithm>
#include <cmath>

#include "policies/sharing/predict/gpu_kinds.h"

namespace tierpilot::sharing {
namespace {

// Round figures, chosen on the pairs of s3_gavel_pairs.csv (docs/results/sharing.md).
constexpr double kPriorMean = 2.5;  // of ln(GPU's time / host's time) on a K80
constexpr double kPriorDeviation = 1.5;
constexpr double kBySamples = 0.5;     // less of it by each unit of ln(samples per second) on a K80
constexpr double kUsualSamples = 500;  // per second; there is no correction
constexpr double kTimesDeviation = 0.25;  // of ln(step time), by what a job is on one card only

constexpr double kLeast = -6, kMost = 6;  // of the logarithm that parts are looked for by
constexpr size_t kPoints = 121;

double at(size_t point) {
  return kLeast + (kMost - kLeast) * static_cast<double>(point) / (kPoints - 1);
}

double ln_faster(const GpuFeatures& than, const GpuFeatures& card) {
  return (std::log(card.float32_ops_per_s() / than.float32_ops_per_s()) +
          std::log(card.memory_bytes_per_s() / than.memory_bytes_per_s())) /
         2;
}

// Than a K80; a card of which nothing is published is taken for one.
double ln_faster(const std::string& card) {
  const auto* known = published_gpu(card);
  return known ? ln_faster(*published_gpu("k80"), *known) : 0;
}

// ln(step time), but for what is common to all cards.
double ln_time(double ln_ratio, double ln_faster) {
  return std::log(std::exp(-ln_ratio) + std::exp(-ln_faster));
}

using OnCards = std::map<std::string, double>;  // steps per second alone

// Squares of how far the logarithms of the times are from those of such a job, but for a constant.
double misfit(const OnCards& alone, double ln_ratio) {
  double sum = 0, squares = 0;
  size_t count = 0;
  for (const auto& [card, steps_s] : alone) {
    if (!published_gpu(card)) continue;
    const double off = -std::log(steps_s) - ln_time(ln_ratio, ln_faster(card));
    sum += off;
    squares += off * off;
    ++count;
  }
  return count < 2 ? 0 : squares - sum * sum / static_cast<double>(count);
}

double prior_mean(double batch, const OnCards& alone) {
  if (batch <= 0) return kPriorMean;
  double sum = 0;
  for (const auto& [card, steps_s] : alone) sum += std::log(steps_s * batch) - ln_faster(card);
  const double mean = sum / static_cast<double>(alone.size());
  return kPriorMean - kBySamples * (mean - std::log(kUsualSamples));
}

double half_square(double value) {
  return value * value / 2;
}

}  // namespace

GpuParts::GpuParts(const PairData& data) {
  std::map<std::string, std::map<double, OnCards>> models;
  for (const auto& sample : data.samples)
    for (const auto* job : {&sample.victim, &sample.neighbour})
      models[job->model][job->batch][sample.card] = job->alone;
  for (const auto& [model, batches] : models) {
    // Batches of a model differ in their times more than in this part: all of them tell it.
    std::vector<double> by_times(kPoints, 0);
    for (const auto& [batch, alone] : batches)
      for (size_t i = 0; i < kPoints; ++i)
        by_times[i] -= misfit(alone, at(i)) / (2 * kTimesDeviation * kTimesDeviation);
    for (const auto& [batch, alone] : batches) {
      auto& likely = likely_[{model, batch}] = by_times;
      const double mean = prior_mean(batch, alone);
      for (size_t i = 0; i < kPoints; ++i)
        likely[i] -= half_square((at(i) - mean) / kPriorDeviation);
    }
  }
}

GpuParts::Part GpuParts::of(const std::string& card, const PairJob& job) const {
  const auto& likely = likely_.at({job.model, job.batch});
  const double most = *std::max_element(likely.begin(), likely.end());
  const double faster = ln_faster(card);
  double weights = 0, sum = 0, squares = 0;
  for (size_t i = 0; i < kPoints; ++i) {
    const double weight = std::exp(likely[i] - most);
    const double part = 1 / (1 + std::exp(faster - at(i)));
    weights += weight;
    sum += weight * part;
    squares += weight * part * part;
  }
  const double mean = sum / weights;
  return {mean, std::sqrt(std::max(squares / weights - mean * mean, 0.0))};
}

}  // namespace tierpilot::sharing
