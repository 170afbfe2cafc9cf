#include "policies/sim/sharing/timed_jobs.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/random.h"

namespace tierpilot::sharing {
namespace {

constexpr double kUpper = 1.645;  // of a normal distribution: 95 %
constexpr double kMedianRun_s = 900, kRunSpread = 0.9;

double normal(SeededRandom& random) {
  const double radius = std::sqrt(-2 * std::log1p(-random.unit()));
  return radius * std::cos(2 * std::numbers::pi * random.unit());
}

uint32_t as_milli(double milli) {
  return static_cast<uint32_t>(std::clamp(milli, 20.0, static_cast<double>(kWholeUnit)));
}

// A quarter of the jobs fills a unit; the others use a tenth to four fifths of it.
uint32_t draw_need(SeededRandom& random) {
  return as_milli(random.chance(0.25) ? 900 + 100 * random.unit() : random.log_uniform(100, 800));
}

// Most pairs do not share well: a fifth keeps nearly all, the median about four fifths.
void draw_pairs(SeededRandom& random, const TimedSettings& settings, TimedWorkload& into) {
  constexpr double kMeanOfNormal = 0.798;  // of its absolute value
  std::vector<double> gentle(kModels);
  for (auto& each : gentle) each = random.unit();
  for (uint32_t victim = 0; victim < kModels; ++victim)
    for (uint32_t other = 0; other < kModels; ++other) {
      const double kept = std::clamp(
          0.62 + 0.2 * gentle[victim] + 0.2 * gentle[other] + 0.06 * normal(random), 0.4, 1.0);
      const double error = settings.retained_error / kMeanOfNormal * normal(random);
      into.retained.push_back(kept);
      into.retained_predicted.push_back(settings.knows_all ? kept
                                                           : std::clamp(kept + error, 0.3, 1.0));
    }
}

Predicted predict(SeededRandom& random, const TimedJob& job, const TimedSettings& settings) {
  const double need = std::exp(settings.need_error * normal(random));
  const double run = std::exp(settings.run_error * normal(random));
  if (settings.knows_all) return {job.need_milli, 0, job.run_s, job.run_s};
  return {as_milli(job.need_milli * need * std::exp(kUpper * settings.need_error)), 0,
          job.run_s * run, job.run_s * run * std::exp(kUpper * settings.run_error)};
}

}  // namespace

TimedWorkload generate_timed(uint64_t seed, const TimedSettings& settings) {
  SeededRandom random(derived_seed(seed, "shares in time"));
  TimedWorkload workload{
      .units = settings.units, .jobs = {}, .retained = {}, .retained_predicted = {}};
  draw_pairs(random, settings, workload);
  double work_s = 0;
  for (uint64_t id = 1; id <= settings.jobs; ++id) {
    auto& job = workload.jobs.emplace_back();
    job.id = id;
    job.model = static_cast<uint32_t>(random.below(kModels));
    job.need_milli = draw_need(random);
    job.run_s = std::clamp(kMedianRun_s * std::exp(kRunSpread * normal(random)), 60.0, 14'400.0);
    job.asked_milli =
        random.chance(0.5) ? kWholeUnit : as_milli(job.need_milli * (1.2 + random.unit()));
    job.predicted = predict(random, job, settings);
    const double factor = 1.2 + 1.8 * random.unit();
    if (random.chance(settings.sensitive_part)) {
      job.job_class = JobClass::kLatencySensitive;
      // As users would: by what they were told, not by what nobody knows.
      job.promise_s = factor * (settings.knows_all ? job.run_s : job.predicted.run_s);
    }
    work_s += job.run_s * job.need_milli / kWholeUnit;
  }
  const double gap_s = work_s / (settings.units * settings.load) / settings.jobs;
  double at_s = 0;
  for (auto& job : workload.jobs) job.arrival_s = at_s += random.exponential(gap_s);
  return workload;
}

}  // namespace tierpilot::sharing
