#include "policies/sim/evaluation/evaluate.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <thread>

#include "policies/sim/evaluation/bound.h"

namespace tierpilot::sim {
namespace {

// All policies on one cell's tasks of one seed.
struct RunJob {
  size_t cell = 0;
  uint64_t seed = 0;
};

class Evaluation {
 public:
  Evaluation(const Suite& suite, const EvaluationOptions& options)
      : suite_(suite), options_(options) {
    for (size_t cell = 0; cell < suite.cells.size(); ++cell)
      for (uint64_t i = 0; i < suite.seeds; ++i) jobs_.push_back({cell, kFirstEvaluationSeed + i});
    runs_.resize(jobs_.size());
    // The large ones first, so that the threads end together.
    order_.resize(jobs_.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return suite.cells[jobs_[a].cell].cluster.node_count() >
             suite.cells[jobs_[b].cell].cluster.node_count();
    });
  }

  Result<std::vector<EvaluatedRun>> run() {
    {
      std::vector<std::jthread> others;
      for (uint32_t i = 1; i < options_.threads; ++i) others.emplace_back([this] { work(); });
      work();
    }
    if (!failed_) return tl::unexpected(failed_.error());
    std::vector<EvaluatedRun> all;
    for (auto& runs : runs_) std::move(runs.begin(), runs.end(), std::back_inserter(all));
    return all;
  }

 private:
  void work() {
    for (size_t i = next_++; i < order_.size(); i = next_++) {
      const Status status = run_job(order_[i]);
      const std::lock_guard lock(mutex_);
      if (!status && failed_) failed_ = status;
      if (!failed_) return;
      ++done_;
      if (options_.progress)
        options_.progress(static_cast<double>(done_) / static_cast<double>(jobs_.size()));
    }
  }

  Status run_job(size_t index) {
    const RunJob& job = jobs_[index];
    const EvaluationCell& cell = suite_.cells[job.cell];
    const auto workload = cell.tasks(job.seed);
    if (!workload) return tl::unexpected(workload.error());
    const double bound_s = mean_response_bound_s(cell.cluster, *workload);
    const ClusterSpec plain = without_shared_rules(cell.cluster);
    const auto add = [&](const std::string& name, bool is_plain) -> Status {
      auto run = run_policy(job, is_plain ? plain : cell.cluster, *workload, name, is_plain);
      if (!run)
        return fail(run.error().code,
                    name + " on " + cell.workload.name + ": " + run.error().message);
      const auto& tally = run->result;
      if (tally.failed + tally.rejected + tally.unfinished == 0) run->bound_s = bound_s;
      runs_[index].push_back(std::move(*run));
      return {};
    };
    for (const std::string& name : options_.policies)
      if (auto status = add(name, false); !status) return status;
    for (const std::string& name : options_.plain)
      if (auto status = add(name, true); !status) return status;
    return {};
  }

  Result<EvaluatedRun> run_policy(const RunJob& job, const ClusterSpec& cluster,
                                  const Workload& workload, const std::string& name,
                                  bool is_plain) const {
    auto player = options_.make_player(name, job.seed);
    if (!player) return tl::unexpected(player.error());
    player->policy->explain(false);
    std::optional<GuardedPolicy> guarded;
    if (const auto guard = options_.guards.find(name); guard != options_.guards.end() && !is_plain)
      guarded.emplace(std::move(*player), guard->second, job.seed);
    auto result =
        guarded ? simulate(cluster, workload, *guarded, {.seed = job.seed, .listener = &*guarded})
                : simulate(cluster, workload, *player->policy,
                           {.seed = job.seed, .listener = player->learner.get()});
    if (!result) return tl::unexpected(result.error());
    if (job.seed != kFirstEvaluationSeed) {
      result->responses_s = {};
      result->samples = {};
    }
    EvaluatedRun run{.cell = job.cell, .seed = job.seed, .policy = name};
    if (is_plain) run.policy = plain_name(name);
    run.result = std::move(*result);
    if (guarded) run.guard = guarded->tally();
    return run;
  }

  const Suite& suite_;
  const EvaluationOptions& options_;
  std::vector<RunJob> jobs_;
  std::vector<size_t> order_;
  std::vector<std::vector<EvaluatedRun>> runs_;  // by job
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  size_t done_ = 0;
  Status failed_;
};

}  // namespace

ClusterSpec without_shared_rules(ClusterSpec cluster) {
  cluster.coordinator.service_order = ServiceOrder::kArrival;
  cluster.coordinator.hold_tasks = false;
  for (NodeGroup& group : cluster.groups) group.readers = UINT32_MAX;
  return cluster;
}

std::string plain_name(const std::string& heuristic) {
  return "plain-" + heuristic;
}

Result<std::vector<EvaluatedRun>> evaluate(const Suite& suite, const EvaluationOptions& options) {
  return Evaluation(suite, options).run();
}

}  // namespace tierpilot::sim
