// Workloads drawn by a seeded generator: what public traces do not have (datasets, their sizes and
// popularity, writes) can be set here one by one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/sim/model/cluster_spec.h"
#include "policies/sim/model/workload.h"

namespace tierpilot::sim {

struct GeneratorOptions {
  std::string name = "generated";
  uint32_t tasks = 10'000;

  // Arrivals are a Poisson process, or one whose rate changes between quiet and burst.
  double arrivals_per_s = 0;  // mean; 0: what makes offered_load
  double offered_load = 0.7;  // work that arrives over what all units together can do
  double burst_factor = 1;    // rate in bursts over the mean rate; 1: no bursts
  double burst_share = 0.1;   // of the time
  double burst_mean_s = 60;   // exponential

  uint32_t datasets = 100;
  uint64_t min_dataset_bytes = 4 << 20;  // sizes are log-uniform between the two
  uint64_t max_dataset_bytes = 64 << 20;
  double zipf_exponent = 1;   // popularity of the i-th is 1 / i^exponent; 0: uniform
  uint32_t phase_tasks = 0;   // after so many tasks other datasets are popular; 0: never
  double scan_share = 0;      // of the tasks: read the datasets one after the other instead
  double second_share = 0.3;  // of the tasks: use two datasets
  double no_data_share = 0;   // of the tasks: use none
  double write_share = 0.1;   // of the tasks with data: write the last of it

  double min_operations = 1e8;  // of each unit; log-uniform
  double max_operations = 1e9;
  double operations_per_byte = 0;  // added for each byte of its data
  std::vector<int> units{1};       // each as likely
  uint64_t memory_bytes = 0;       // of each task

  double gpu_share = 0;                // of the tasks
  std::vector<int> gpu_milli{1000};    // each as likely
  std::vector<std::string> gpu_types;  // each as likely; none: any will do

  double gang_share = 0;           // of the tasks: gangs, whose ranks need each what a task needs
  std::vector<int> gang_ranks{2};  // each as likely

  uint32_t users = 1;
  double user_zipf_exponent = 1;
};

// kInvalid names every wrong value.
Result<GeneratorOptions> read_generator_options(const std::filesystem::path& path);
Result<GeneratorOptions> parse_generator_options(std::string_view toml, std::string origin);

// The same options, cluster and seed give the same workload. The cluster matters for offered_load
// only.
Workload generate(const GeneratorOptions& options, const ClusterSpec& cluster, uint64_t seed);

}  // namespace tierpilot::sim
