#include "policies/sim/sharing/timed_draws.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tierpilot::sharing {
namespace {

constexpr double kUpper = 1.645;  // of a normal distribution: 95 %

}  // namespace

uint32_t as_milli(double milli) {
  return static_cast<uint32_t>(std::clamp(milli, 20.0, static_cast<double>(kWholeUnit)));
}

double draw_normal(SeededRandom& random) {
  const double radius = std::sqrt(-2 * std::log1p(-random.unit()));
  return radius * std::cos(2 * std::numbers::pi * random.unit());
}

// A quarter of the jobs fills a unit; the others use a tenth to four fifths of it.
uint32_t draw_need(SeededRandom& random) {
  return as_milli(random.chance(0.25) ? 900 + 100 * random.unit() : random.log_uniform(100, 800));
}

double draw_overask(SeededRandom& random) {
  return 1.2 + random.unit();
}

double draw_promise_factor(SeededRandom& random) {
  return 1.2 + 1.8 * random.unit();
}

// Most pairs do not share well: a fifth keeps nearly all, the median about four fifths.
void draw_pairs(SeededRandom& random, const TimedSettings& settings, TimedWorkload& into) {
  constexpr double kMeanOfNormal = 0.798;  // of its absolute value
  std::vector<double> gentle(kModels);
  for (auto& each : gentle) each = random.unit();
  for (uint32_t victim = 0; victim < kModels; ++victim)
    for (uint32_t other = 0; other < kModels; ++other) {
      const double kept = std::clamp(
          0.62 + 0.2 * gentle[victim] + 0.2 * gentle[other] + 0.06 * draw_normal(random), 0.4, 1.0);
      const double error = settings.retained_error / kMeanOfNormal * draw_normal(random);
      into.retained.push_back(kept);
      into.retained_predicted.push_back(settings.knows_all ? kept
                                                           : std::clamp(kept + error, 0.3, 1.0));
    }
}

Predicted predict(SeededRandom& random, const TimedJob& job, const TimedSettings& settings) {
  const double need = std::exp(settings.need_error * draw_normal(random));
  const double run = std::exp(settings.run_error * draw_normal(random));
  return {as_milli(job.need_milli * need * std::exp(kUpper * settings.need_error)), 0,
          job.run_s * run, job.run_s * run * std::exp(kUpper * settings.run_error)};
}

void ask_for_promise(TimedJob& job, double factor, const TimedSettings& settings) {
  const bool by_truth = settings.knows_all && !settings.asked_alike;
  job.promise_s = factor * (by_truth ? job.run_s : job.predicted.run_s);
}

void reveal(TimedJob& job, const TimedSettings& settings) {
  if (settings.knows_all) job.predicted = {job.need_milli, 0, job.run_s, job.run_s};
}

}  // namespace tierpilot::sharing
