// One allocator on one world of training jobs.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/sim/quality/training_world.h"

namespace tierpilot::sim {

inline constexpr std::array kLossLeft{0.25, 0.10, 0.05};  // whose times are told
inline constexpr std::array kLossGroups{0.2, 0.3, 0.5};   // of running jobs, by loss left

struct JobOutcome {
  std::array<double, kLossLeft.size()> reached_s{};  // after arrival
  double completion_s = 0;                           // after arrival, 1 % left
  double starved_s = 0;  // longest time below a quarter of an equal share
};

struct TrainingResult {
  double mean_loss = 0;          // of jobs that have arrived, ended ones included, over the window
  double mean_running_loss = 0;  // of those that have not ended
  double loss_at_end = 0;        // of the window
  std::array<double, kLossGroups.size()> group_shares{};  // of the cores, in the window
  double utilisation = 0;  // cores given while there were jobs that could use them, in the window
  double moves_per_minute = 0;  // cores taken from one job for another
  double rebalance_s = 0;       // from an arrival to an equal share, in the mean
  std::vector<JobOutcome> jobs;
};

// "clairvoyant" is the default allocator with the true curves, costs and speeds in place of what is
// predicted. A job ends when 1 % of its loss is left.
Result<TrainingResult> run_training(const TrainingWorld& world, const std::string& allocator);

}  // namespace tierpilot::sim
