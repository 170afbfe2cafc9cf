// One policy's run of the workload, and the figures that come of it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/demo/demo_cluster.h"
#include "tools/demo/progress.h"
#include "tools/tierload/replay.h"

namespace tierpilot::demo {

// Rewards in the order of their decisions; a decision whose reward was never measured has none.
struct RewardStats {
  size_t measured = 0;
  std::optional<double> mean;
  std::optional<double> first_quarter;  // mean over the first quarter of the decisions
  std::optional<double> last_quarter;
};
RewardStats reward_stats(const std::vector<std::optional<double>>& rewards);

struct PolicyRun {
  std::string name;
  std::vector<tierload::TaskFacts> tasks;
  std::vector<std::optional<double>> reward_list;  // in the order of the decisions
  tierload::Summary summary;
  std::vector<std::string> failures;  // "task 7 (task-00007) on n2: cause"
  double wall_s = 0;
  int64_t latest_submit_ms = 0;
  std::optional<double> utilisation;  // of the nodes' units
  std::optional<double> cpus_busy;    // share of this machine's CPU time, whoever used it
  RewardStats rewards;
  nlohmann::ordered_json decision_us;  // {"p50", "p99"}, null with the reason beside it
  uint64_t fallbacks = 0;
  nlohmann::ordered_json learner_start, learner_end;  // null: it does not learn
  // Of several rounds, see pooled(): the mean response in each.
  std::vector<double> round_response_ms;
};

// The nodes' datasets are gone before and after.
Result<PolicyRun> run_policy(DemoCluster& cluster, const std::string& policy,
                             const tierload::Workload& workload, const std::string& program,
                             Progress& progress);

}  // namespace tierpilot::demo
