#include "policies/sim/outcomes.h"

#include <algorithm>

namespace tierpilot::sim {
namespace {

double least_launch_s(const ClusterSpec& cluster) {
  double least_s = cluster.groups.empty() ? 0 : cluster.groups.front().launch_s;
  for (const NodeGroup& group : cluster.groups) least_s = std::min(least_s, group.launch_s);
  return least_s;
}

double seconds(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) * 1e-9;
}

}  // namespace

Outcomes::Outcomes(const ClusterSpec& cluster, const Workload& workload, const ReplicaStore& store,
                   const RunOptions& options)
    : workload_(workload),
      store_(store),
      reward_(options.reward),
      listener_(options.listener),
      recorder_(workload) {
  const CoordinatorSpec& coordinator = cluster.coordinator;
  overhead_s_ = coordinator.accept_s + coordinator.dispatch_s + coordinator.report_s +
                least_launch_s(cluster);
  for (const NodeGroup& group : cluster.groups) {
    fastest_operations_per_s_ = std::max(fastest_operations_per_s_, group.operations_per_s);
    fastest_read_bytes_per_s_ =
        std::max(fastest_read_bytes_per_s_, group.tiers.fast_read_bytes_per_s);
  }
}

bool Outcomes::served(int64_t now_ns, Attempt attempt, const Service& service,
                      const TierSpeeds& tiers, double utilisation) {
  recorder_.served(service);
  ServiceMeasure measure;
  measure.utilisation = utilisation;
  measure.service_ns = static_cast<double>(std::max<int64_t>(now_ns - service.asked_ns, 1));
  const uint64_t bytes = service.hit_bytes + service.promoted_bytes + service.fetched_bytes;
  measure.reference_ns =
      tiers.fast_latency_ns + static_cast<double>(bytes) / tiers.fast_read_bytes_per_s * 1e9;
  // A clean copy that is dropped moves no byte: only what was written is paid for.
  measure.evicted_bytes = service.evicted_written_bytes;
  measure.evict_bytes_per_s = tiers.evict_bytes_per_s;
  const auto reward = compute_reward(measure, reward_);
  if (!reward) return false;
  recorder_.rewarded(reward->reward);
  if (listener_of(attempt)) listener_->served(attempt, measure, *reward);
  return true;
}

void Outcomes::succeeded(int64_t now_ns, Attempt attempt, const Times& times) {
  const Task& task = workload_.tasks[attempt.task];
  recorder_.finished(task, times.started_ns, now_ns, alone_s(task));
  if (listener_of(attempt))
    listener_->finished(
        attempt, {seconds(task.arrival_ns, times.started_ns), seconds(task.arrival_ns, now_ns),
                  seconds(times.decided_ns, now_ns), seconds(times.asked_ns, now_ns)});
  ++ended_;
}

double Outcomes::alone_s(const Task& task) const {
  uint64_t bytes = 0;
  for (const DatasetUse& use : workload_.uses_of(task))
    bytes += store_.datasets().bytes(use.dataset);
  // No task takes no time, or a slowdown would be endless.
  return std::max(1e-6, overhead_s_ + task.operations / fastest_operations_per_s_ +
                            static_cast<double>(bytes) / fastest_read_bytes_per_s_);
}

RunResult Outcomes::result(uint64_t events) {
  RunResult result = recorder_.result();
  result.events = events;
  result.unfinished = workload_.jobs() - ended_;
  return result;
}

}  // namespace tierpilot::sim
