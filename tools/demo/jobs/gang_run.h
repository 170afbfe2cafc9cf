// The same training jobs on three nodes, placed by one policy, with or without a unit that fails
// again and again.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/demo/demo_cluster.h"
#include "tools/demo/training_stage.h"

namespace tierpilot::demo {

// What jobs run: a program on libtorch and a script for PyTorch.
struct JobPrograms {
  std::string trainer;
  TrainingScript script;
};

struct GangPlan {
  std::string name;
  std::string model;  // which of the trainer's; empty: the script's only one
  uint32_t ranks = 1;
  uint32_t steps = 0;
  std::string after;  // the job that must have ended; empty: none
  uint32_t gpus_per_rank = 0;
};
// `gpus`: the nodes have some, and one of the jobs asks for them.
std::vector<GangPlan> gang_plans(double scale, bool gpus);

// Whoever computes on this unit is killed once it has trained and saved for a while.
struct BadUnit {
  std::string node;
  uint32_t cpu_unit = 0;
  double fails_after_s = 2;  // of training
};

// Its driver reports Xid errors: one while nobody uses it, and one of each try of a job on it, once
// that has trained and saved for a while.
struct BadGpu {
  std::string node, uuid;
  std::function<void(unsigned number)> report_xid;
  double first_after_s = 3;  // of the run
  double fails_after_s = 2;  // of training
};

// What is made to fail; nothing else does.
struct Failures {
  std::optional<BadUnit> unit;
  std::optional<BadGpu> gpu;
};

struct GangJob {
  std::string name;
  uint32_t ranks = 0;
  uint32_t units_per_rank = 1;
  std::string state, reason;
  uint32_t restarts = 0;
  uint64_t iteration = 0, iterations = 0;
  std::optional<double> loss;  // as it printed at its end
  uint64_t checkpoints = 0;
  double stall_ms = 0;  // of a checkpoint, on average
  double submitted_s = 0, started_s = 0, finished_s = 0;
  double lost_unit_s = 0;  // since what it had saved when it failed
};

struct GangRun {
  std::string name;
  std::vector<GangJob> jobs;
  uint32_t kills = 0;
  uint32_t xids = 0;
  double busy_unit_s = 0;
  double wall_s = 0;
  uint32_t cluster_units = 0;
  nlohmann::ordered_json units;  // of the cluster, in the end
};

using GangView = std::function<void(const GangRun&)>;
// The jobs' ends are all in it, also where they failed; an error when the cluster died, or when
// they took longer than `patience_s`.
Result<GangRun> run_gangs(DemoCluster& cluster, const std::string& name,
                          const JobPrograms& programs, const std::vector<GangPlan>& plans,
                          const Failures& failures, double patience_s, const GangView& show);

}  // namespace tierpilot::demo
