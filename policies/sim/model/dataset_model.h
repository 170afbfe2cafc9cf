// What public traces do not tell: which data the jobs read and write, and their memory. A seeded
// model with stated parameters stands in; what is known of real clusters it is made to agree with:
//
// - Data belongs to somebody: each user (or virtual cluster) has datasets of its own, and a few are
//   shared by all, as training sets and reference data are.
// - Popularity within a set is Zipf-like. Files of seven Hadoop clusters had a slope of about 5/6
//   (Chen, Alspaugh, Katz: Interactive Analytical Processing in Big Data Systems, PVLDB 5(12),
//   2012).
// - Data is used again soon (same study; Abad et al.: A Storage-Centric Analysis of MapReduce
//   Workloads, IISWC 2012): a job often reads what the same user's job before it read.
// - Sizes are log-normal, as file sizes are (Downey: The Structural Cause of File Size
//   Distributions, MASCOTS 2001).
//
// The parameters that no study gives are choices; whoever knows the cluster better sets them.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "policies/sim/model/workload.h"

namespace tierpilot::sim {

struct DatasetModel {
  uint64_t seed = 1;
  double tasks_per_dataset = 8;   // a user with n tasks has n / this datasets, at least one
  uint32_t shared_datasets = 16;  // that every user may use
  double zipf_slope = 5.0 / 6;
  double repeat = 0.5;   // probability that a task uses what its user's task before used
  double shared = 0.1;   // probability of a use, else, that it is of a shared dataset
  double another = 0.3;  // probability of one more dataset, up to max_per_task
  uint32_t max_per_task = 4;
  double write =
      0.2;  // probability that a task writes the first of its datasets; never a shared one
  double median_bytes = 4.0 * (1 << 30);
  double sigma = 1.4;  // of the logarithm: 2 of 3 sizes are within a factor of e^1.4 = 4
  uint64_t min_bytes = 1 << 20;
  uint64_t max_bytes = uint64_t{64} << 30;
  // Private memory, of tasks whose trace tells none, for each of their units. 0: none.
  double memory_median_bytes = 1 << 30;
  double memory_sigma = 1;
};

// Gives every task of `workload`, which has no datasets, its uses, and memory where it has 0.
// Users' draws are independent: another user's tasks change nothing. Equal seeds, equal result.
// kInvalid names the parameter that is out of range.
Status add_datasets(Workload& workload, const DatasetModel& model);

}  // namespace tierpilot::sim
