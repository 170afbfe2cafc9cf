// Jobs of a trace over time: arrivals, run times, what users ask for and, where it is told, the
// class are the trace's; the rest is drawn as for jobs that are drawn altogether.
#pragma once

#include "policies/sim/sharing/job_source.h"
#include "policies/sim/sharing/timed_jobs.h"

namespace tierpilot::sharing {

inline constexpr uint32_t kMostClusterUnits = 10'000;

// The mean, over arrivals, of the units that jobs then need, if none waits and nothing holds any
// back.
double met_demand(const std::vector<TimedJob>& jobs);

// As many jobs as `settings.jobs`, drawn from all of the trace, on so many units that
// `settings.load` of them are needed in the mean over arrivals (met_demand); settings.units is not
// looked at. Where the trace has nodes, their mix of models, and at most all of them. A job of
// several units uses whole ones, which need not be free at one time; a job whose models none of the
// drawn units has is left out, see left_out().
TimedWorkload timed_workload(const JobSource& source, uint64_t seed, const TimedSettings& settings);

// Of the jobs drawn: those that no unit will do for.
uint64_t left_out(const JobSource& source, const TimedSettings& settings,
                  const TimedWorkload& workload);

}  // namespace tierpilot::sharing
