// The same training jobs on one node, their cores given out by one allocator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/demo/demo_cluster.h"
#include "tools/demo/quality/training_log.h"
#include "tools/demo/training_stage.h"

namespace tierpilot::demo {

struct TrainingPlan {
  std::string name;
  uint32_t iterations = 0;
  double arrival_s = 0;
  bool in_cpp = false;  // trained by tierpilot-trainer, on one thread; else by the script
  uint64_t seed = 0;    // of its data and first weights
};

// So that each is some twenty seconds of work for one core.
std::vector<TrainingPlan> training_plans(double scale, double gap_s, uint64_t seed);

struct TrainingPrograms {
  TrainingScript script;
  std::string trainer;
};

// Of the node that they run on.
struct TrainingUnits {
  uint32_t all = 0, per_cpu = 0;
};

// What is known of a job while it runs.
struct JobNow {
  std::string name, state;
  double cores = 0;
  double loss_left = 1;        // as the coordinator reckons it
  std::vector<double> losses;  // as reported, thinned
  uint64_t iteration = 0, iterations = 0;
};

// Who had how many cores at one time, by job; 0: it did not run.
struct CoresThen {
  double at_s = 0;
  std::vector<double> cores;
};

struct AllocatorRun {
  std::string name;
  std::vector<TrainingSeries> jobs;  // by plan
  std::vector<CoresThen> cores;
  std::vector<std::string> failures;
  double begin_s = 0, end_s = 0;
  uint32_t moves = 0;  // changes of a job's cores by more than a twentieth
};

using LiveView = std::function<void(double since_s, const std::vector<JobNow>& jobs)>;
Result<AllocatorRun> run_allocator(DemoCluster& cluster, const std::string& allocator,
                                   const TrainingPrograms& programs,
                                   const std::vector<TrainingPlan>& plans,
                                   const TrainingUnits& units, const LiveView& show);

}  // namespace tierpilot::demo
