#include "policies/sim/sharing/timed_jobs.h"

#include <algorithm>
#include <cmath>

#include "policies/sim/sharing/timed_draws.h"

namespace tierpilot::sharing {
namespace {

constexpr double kMedianRun_s = 900, kRunSpread = 0.9;

}  // namespace

TimedWorkload generate_timed(uint64_t seed, const TimedSettings& settings) {
  SeededRandom random(derived_seed(seed, "shares in time"));
  TimedWorkload workload;
  workload.units = settings.units;
  workload.seed = seed;
  draw_pairs(random, settings, workload);
  double work_s = 0;
  for (uint64_t id = 1; id <= settings.jobs; ++id) {
    auto& job = workload.jobs.emplace_back();
    job.id = id;
    job.model = static_cast<uint32_t>(random.below(kModels));
    job.need_milli = draw_need(random);
    job.run_s =
        std::clamp(kMedianRun_s * std::exp(kRunSpread * draw_normal(random)), 60.0, 14'400.0);
    job.asked_milli =
        random.chance(0.5) ? kWholeUnit : as_milli(job.need_milli * draw_overask(random));
    job.predicted = predict(random, job, settings);
    const double factor = draw_promise_factor(random);
    if (random.chance(settings.sensitive_part)) {
      job.job_class = JobClass::kLatencySensitive;
      ask_for_promise(job, factor, settings);
    }
    reveal(job, settings);
    work_s += job.run_s * job.need_milli / kWholeUnit;
  }
  const double gap_s = work_s / (settings.units * settings.load) / settings.jobs;
  double at_s = 0;
  for (auto& job : workload.jobs) job.arrival_s = at_s += random.exponential(gap_s);
  return workload;
}

}  // namespace tierpilot::sharing
