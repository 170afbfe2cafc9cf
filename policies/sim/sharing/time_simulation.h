// Jobs share units over time by one policy, as the coordinator carries it out: queues, promises,
// shares that change, preemption by checkpoint, neighbours that slow each other. Event by event;
// the same workload and policy give the same result.
#pragma once

#include <memory>

#include "policies/sharing/interference/interference.h"
#include "policies/sharing/live/share_policy.h"
#include "policies/sim/sharing/job_source.h"
#include "policies/sim/sharing/timed_jobs.h"

namespace tierpilot::sharing {

struct TimedRun {
  uint32_t asked = 0, made = 0, kept = 0;  // promises
  uint32_t made_on_trial = 0;              // of those made
  double best_effort_mean_s = 0;           // from arrival to end
  double best_effort_per_h = 0;            // work done until the last arrival, in unit hours
  double makespan_s = 0;
  double used = 0;   // of the units' time until the last arrival
  double given = 0;  // likewise; what is not used was given for nothing
  uint32_t preemptions = 0;
  double lost_s = 0;  // of work, by preemption
  double slowed = 0;  // by neighbours, in the mean over running time
};

struct TimedRules {
  double period_s = 10;      // between adjustments
  double period_part = 0;    // or this part of the shortest run that is left there, if that is more
  double seen_after_s = 30;  // then a job has shown its use and pace
  double checkpoint_s = 15;  // of work that a preemption loses, and its restart
  bool users_ask = false;    // for what they think; else jobs get what is predicted
  bool trials = false;       // of promises that cannot be made when jobs come
  double pace_noise = 0.06;  // standard deviation of ln(pace), as it is measured between two looks
};

// What is thought of slow-downs, and by which object it is learned; null: nothing is.
struct Thought {
  Retained retained;
  std::shared_ptr<Interference> learns;
};

TimedRun simulate_timed(const TimedWorkload& workload, SharePolicy& policy, const TimedRules& rules,
                        const Thought& thought = {});

// Beside the policies of share_policies(): `share` where all users let promises be on trial, and
// what it is held against: without slow-downs, with each pair's as well as published pairs are
// predicted, and with all that is to be known: then users ask for promises by the truth, or alike.
inline constexpr std::string_view kOnTrial = "share-on-trial", kUnaware = "share-unaware",
                                  kForetold = "share-foretold", kClairvoyant = "clairvoyant",
                                  kAskedAlike = "clairvoyant-asked-alike";
// Policies of share_policies(), that learn of slow-downs what they would measure, and those above.
// kNotFound.
// `source`: where jobs come from; null: all is drawn.
Result<TimedRun> run_timed(std::string_view policy, uint64_t seed, TimedSettings settings,
                           const TimedRules& rules, const JobSource* source = nullptr);

}  // namespace tierpilot::sharing
