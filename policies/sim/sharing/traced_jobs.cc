#include "policies/sim/sharing/traced_jobs.h"

#include <algorithm>
#include <cmath>

#include "policies/sim/sharing/timed_draws.h"

namespace tierpilot::sharing {
namespace {

uint64_t drawn_jobs(const JobSource& source, const TimedSettings& settings) {
  return std::min<uint64_t>(settings.jobs, source.jobs.size());
}

// So many of the jobs, each as likely as any other, in their order.
std::vector<SourceJob> draw_jobs(SeededRandom& random, const JobSource& source, uint64_t wanted) {
  std::vector<SourceJob> drawn;
  for (size_t i = 0; i < source.jobs.size() && drawn.size() < wanted; ++i) {
    const auto missing = static_cast<double>(wanted - drawn.size());
    if (random.chance(missing / static_cast<double>(source.jobs.size() - i)))
      drawn.push_back(source.jobs[i]);
  }
  return drawn;
}

// Users who ask for a whole unit use what such users use, the others a part of what they ask for.
uint32_t need_of(SeededRandom& random, const SourceJob& from) {
  if (from.units > 1) return kWholeUnit;
  if (from.asked_milli == kWholeUnit) return draw_need(random);
  return as_milli(from.asked_milli / draw_overask(random));
}

TimedJob make_job(SeededRandom& random, const SourceJob& from, const TimedSettings& settings) {
  TimedJob job;
  job.arrival_s = from.arrival_s;
  job.run_s = from.run_s;
  job.types = from.models;
  job.asked_milli = from.asked_milli;
  job.model = static_cast<uint32_t>(random.below(kModels));
  job.need_milli = need_of(random, from);
  job.predicted = predict(random, job, settings);
  if (from.units > 1) job.predicted.milli = kWholeUnit;  // whole ones are asked for
  const double factor = draw_promise_factor(random);
  const bool drawn_sensitive = random.chance(settings.sensitive_part);
  job.job_class = from.job_class.value_or(drawn_sensitive ? JobClass::kLatencySensitive
                                                          : JobClass::kBestEffort);
  if (job.job_class == JobClass::kLatencySensitive) ask_for_promise(job, factor, settings);
  reveal(job, settings);
  return job;
}

void add_parts(TimedJob job, uint32_t parts, std::vector<TimedJob>& into) {
  const uint64_t first = into.size() + 1;
  if (parts > 1) job.first_part = first;
  for (uint32_t part = 0; part < parts; ++part) {
    job.id = first + part;
    into.push_back(job);
  }
}

// Evenly from all units of the trace, by model, where jobs ask for models.
void pick_units(const JobSource& source, TimedWorkload& into) {
  const bool choosy = std::any_of(source.jobs.begin(), source.jobs.end(),
                                  [](const SourceJob& job) { return job.models != kAnyModel; });
  if (!choosy || source.units.empty()) return;
  auto all = source.units;
  std::sort(all.begin(), all.end());
  into.types = source.models;
  for (uint64_t unit = 0; unit < into.units; ++unit)
    into.type_of.push_back(all[unit * all.size() / into.units]);
}

}  // namespace

double met_demand(const std::vector<TimedJob>& jobs) {
  if (jobs.empty()) return 0;
  std::vector<std::pair<double, uint32_t>> ends;
  for (const auto& job : jobs) ends.emplace_back(job.arrival_s + job.run_s, job.need_milli);
  std::sort(ends.begin(), ends.end());
  double now = 0, sum = 0;
  size_t ended = 0;
  for (const auto& job : jobs) {
    for (; ended < ends.size() && ends[ended].first <= job.arrival_s; ++ended)
      now -= ends[ended].second;
    sum += now += job.need_milli;
  }
  return sum / kWholeUnit / static_cast<double>(jobs.size());
}

TimedWorkload timed_workload(const JobSource& source, uint64_t seed,
                             const TimedSettings& settings) {
  SeededRandom random(derived_seed(seed, "traced shares in time"));
  TimedWorkload workload;
  workload.seed = seed;
  draw_pairs(random, settings, workload);
  for (const auto& from : draw_jobs(random, source, drawn_jobs(source, settings)))
    add_parts(make_job(random, from, settings), from.units, workload.jobs);
  const double most =
      source.units.empty()
          ? kMostClusterUnits
          : std::min<double>(kMostClusterUnits, static_cast<double>(source.units.size()));
  workload.units = static_cast<uint32_t>(
      std::clamp(std::round(met_demand(workload.jobs) / settings.load), 1.0, most));
  pick_units(source, workload);
  uint64_t there = workload.type_of.empty() ? kAnyModel : 0;
  for (const uint8_t type : workload.type_of) there |= uint64_t{1} << type;
  std::erase_if(workload.jobs, [&](const TimedJob& job) { return (job.types & there) == 0; });
  return workload;
}

uint64_t left_out(const JobSource& source, const TimedSettings& settings,
                  const TimedWorkload& workload) {
  uint64_t there = 0;
  for (const auto& job : workload.jobs) there += job.id == job.whole_id();
  return drawn_jobs(source, settings) - there;
}

}  // namespace tierpilot::sharing
