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

struct GangPlan {
  std::string name;
  std::string kind;  // which of the script's
  uint32_t ranks = 1;
  uint32_t steps = 0;
  std::string after;  // the job that must have ended; empty: none
};
std::vector<GangPlan> gang_plans(double scale);

// Whoever computes on this unit is killed once it has trained and saved for a while.
struct BadUnit {
  std::string node;
  uint32_t cpu_unit = 0;
  double fails_after_s = 2;  // of training
};

struct GangJob {
  std::string name;
  uint32_t ranks = 0;
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
  double busy_unit_s = 0;
  double wall_s = 0;
  uint32_t cluster_units = 0;
  nlohmann::ordered_json units;  // of the cluster, in the end
};

using GangView = std::function<void(const GangRun&)>;
// The jobs' ends are all in it, also where they failed; an error when the cluster died, or when
// they took longer than `patience_s`.
Result<GangRun> run_gangs(DemoCluster& cluster, const std::string& name,
                          const TrainingScript& script, const std::vector<GangPlan>& plans,
                          const std::optional<BadUnit>& bad, double patience_s,
                          const GangView& show);

}  // namespace tierpilot::demo
