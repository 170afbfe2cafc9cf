// What a simulation of shares over time runs by name: the policies of a cluster
// (policies/sharing/live), two rivals of full load that place what users ask for
// (policies/sharing/rivals.h), `share` where all users let promises be on trial, and what `share`
// is held against: itself without slow-downs, with each pair's as well as published pairs are
// predicted, and with all that is to be known: then users ask for promises by the truth, or alike.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policies/sim/sharing/job_source.h"
#include "policies/sim/sharing/time_simulation.h"

namespace tierpilot::sharing {

inline constexpr std::string_view kPacked = "packing", kDescending = "fgd",
                                  kOnTrial = "share-on-trial", kUnaware = "share-unaware",
                                  kForetold = "share-foretold", kClairvoyant = "clairvoyant",
                                  kAskedAlike = "clairvoyant-asked-alike";

std::vector<std::string> timed_policies();

// What the policy is run on. `source`: where jobs come from; null: all is drawn.
TimedWorkload workload_for(std::string_view policy, uint64_t seed, TimedSettings settings,
                           const JobSource* source);

// Policies that learn of slow-downs learn what they would measure. kNotFound.
Result<TimedRun> run_timed(std::string_view policy, uint64_t seed, const TimedSettings& settings,
                           const TimedRules& rules, const JobSource* source = nullptr);

}  // namespace tierpilot::sharing
