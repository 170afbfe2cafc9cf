#include "policies/sim/evaluation/bound.h"

#include <algorithm>
#include <queue>
#include <vector>

namespace tierpilot::sim {
namespace {

struct Fastest {
  explicit Fastest(const ClusterSpec& cluster) {
    launch_s = slowest_operations_per_s = 1e300;
    for (const NodeGroup& group : cluster.groups) {
      operations_per_s = std::max(operations_per_s, group.operations_per_s);
      slowest_operations_per_s = std::min(slowest_operations_per_s, group.operations_per_s);
      promote_bytes_per_s = std::max(promote_bytes_per_s, group.tiers.promote_bytes_per_s);
      launch_s = std::min(launch_s, group.launch_s);
      total_operations_per_s += group.operations_per_s * group.units * group.count;
    }
  }
  double operations_per_s = 0, slowest_operations_per_s, promote_bytes_per_s = 0, launch_s;
  double total_operations_per_s = 0;
};

// A task, or a gang as a whole.
struct Job {
  double arrival_s = 0;
  double release_s = 0;  // no start before it
  double run_s = 0;      // at least
  double work = 0;       // of all its units, at least
};

std::vector<Job> jobs_of(const ClusterSpec& cluster, const Workload& workload,
                         const Fastest& fastest) {
  const double way_s = cluster.coordinator.accept_s + cluster.coordinator.dispatch_s;
  std::vector<double> present_s(workload.datasets.size(), -1);
  std::vector<Job> jobs;
  for (size_t i = 0; i < workload.tasks.size(); ++i) {
    const Task& task = workload.tasks[i];
    const Gang* gang = task.gang == kNoGang ? nullptr : &workload.gangs[task.gang];
    if (gang && gang->first != i) continue;
    Job job;
    job.arrival_s = static_cast<double>(task.arrival_ns) * 1e-9;
    job.release_s = job.arrival_s + way_s;
    const double received_s = job.release_s;
    for (const DatasetUse& use : workload.uses_of(task)) {
      double& at_s = present_s[use.dataset];
      if (at_s < 0)
        at_s = received_s + static_cast<double>(workload.datasets[use.dataset].bytes) /
                                fastest.promote_bytes_per_s;
      job.release_s = std::max(job.release_s, at_s);
    }
    job.run_s = fastest.launch_s + task.operations / fastest.operations_per_s;
    job.work = (gang ? gang->ranks : 1) * task.units *
               (task.operations + fastest.launch_s * fastest.slowest_operations_per_s);
    jobs.push_back(job);
  }
  return jobs;
}

// The sum of the jobs' mean busy dates on one server, the shortest first, interrupting longer ones.
double mean_busy_dates_s(const std::vector<Job>& jobs, double work_per_s) {
  std::vector<size_t> by_release(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) by_release[i] = i;
  std::sort(by_release.begin(), by_release.end(),
            [&](size_t a, size_t b) { return jobs[a].release_s < jobs[b].release_s; });
  struct Left {
    double whole, work;
    bool operator>(const Left& other) const { return whole > other.whole; }
  };
  std::priority_queue<Left, std::vector<Left>, std::greater<>> open;
  double now_s = 0, sum_s = 0;
  for (size_t next = 0; next < jobs.size() || !open.empty();) {
    if (open.empty()) now_s = std::max(now_s, jobs[by_release[next]].release_s);
    for (; next < jobs.size() && jobs[by_release[next]].release_s <= now_s; ++next)
      open.push({jobs[by_release[next]].work, jobs[by_release[next]].work});
    Left job = open.top();
    open.pop();
    double until_s = now_s + job.work / work_per_s;
    if (next < jobs.size()) until_s = std::min(until_s, jobs[by_release[next]].release_s);
    const double done = std::min(job.work, (until_s - now_s) * work_per_s);
    if (job.whole > 0) sum_s += done / job.whole * (now_s + until_s) / 2;
    job.work -= done;
    // What is left over by rounding takes no time that could be told, and is done.
    if (job.work > job.whole * 1e-9 && until_s > now_s) open.push(job);
    now_s = until_s;
  }
  return sum_s;
}

}  // namespace

double mean_response_bound_s(const ClusterSpec& cluster, const Workload& workload) {
  if (workload.tasks.empty() || cluster.groups.empty()) return 0;
  const Fastest fastest(cluster);
  const std::vector<Job> jobs = jobs_of(cluster, workload, fastest);
  double alone_s = 0, half_runs_s = 0, arrivals_s = 0;
  for (const Job& job : jobs) {
    alone_s += job.release_s + job.run_s;
    half_runs_s += job.run_s / 2;
    arrivals_s += job.arrival_s;
  }
  const double conserved_s = mean_busy_dates_s(jobs, fastest.total_operations_per_s) + half_runs_s;
  const auto count = static_cast<double>(jobs.size());
  return (std::max(alone_s, conserved_s) - arrivals_s) / count + cluster.coordinator.report_s;
}

}  // namespace tierpilot::sim
