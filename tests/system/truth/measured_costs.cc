#include "tests/system/truth/measured_costs.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace tierpilot::test {
namespace {

constexpr size_t kEnoughAlone = 10;
constexpr size_t kEnoughQueued = 3;
constexpr double kCutS = 0.5e-3;  // of run times, which are told in whole ms

double seconds(const Json& ns) {
  return ns.get<double>() * 1e-9;
}
double wall_s(const Json& task) {
  return seconds(task["exit"]["wall_ns"]) + kCutS;
}
double serving_s(const Json& task) {
  return seconds(task["served"]["latency_ns"]);
}
bool has_written(const Json& task) {
  return !task["exit"]["written"].empty();
}

// Means, as a mean is what they are to add up to.
double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// No other task was in the cluster between its submit and its end.
bool was_alone(const Json& task, const Json& tasks) {
  return std::none_of(tasks.begin(), tasks.end(), [&](const Json& other) {
    return other["id"] != task["id"] && other["submitted_ms"] <= task["finished_ms"] &&
           other["finished_ms"] >= task["submitted_ms"];
  });
}

// The last that started on the task's node before it.
const Json* predecessor(const Json& task, const Json& tasks) {
  const Json* last = nullptr;
  for (const auto& other : tasks)
    if (other["node"] == task["node"] && other["started_ms"] < task["started_ms"] &&
        (!last || other["started_ms"] > (*last)["started_ms"]))
      last = &other;
  return last;
}

// From the end of one process to the start of the next, of tasks that had all they needed but a
// unit. A commit keeps a task after its process: those behind such do not count.
std::vector<double> successions_s(const Json& tasks, double outside_s) {
  std::vector<double> found;
  for (const auto& task : tasks) {
    const Json* before = predecessor(task, tasks);
    const double ready_ms =
        task["submitted_ms"].get<double>() + (outside_s + serving_s(task)) * 1e3;
    if (!before || has_written(*before) || (*before)["finished_ms"] < ready_ms) continue;
    const double gap_ms = task["started_ms"].get<double>() - (*before)["finished_ms"].get<double>();
    found.push_back(gap_ms * 1e-3 - kCutS);  // a start is told as the end less the run time
  }
  return found;
}

// Of the coordinator and the daemons for one task, with its transfers and its launch.
double attendance_core_s(const RealRun& run, const RealRun& smallest, const CpuTime& idle) {
  const CpuTime more = run.used - smallest.used;
  const double own_s = more.own_s - (run.tasks_cpu_s() - smallest.tasks_cpu_s()) -
                       idle.own_s / idle.all_s * more.all_s;
  return own_s / static_cast<double>(run.tasks.size() - smallest.tasks.size());
}

// Bytes a second of what took `took_ns` of each of the tasks; empty: of too few.
template <class Bytes, class TookNs>
std::optional<double> rate_of(const Json& tasks, Bytes bytes, TookNs took_ns) {
  double sum_bytes = 0, sum_s = 0;
  size_t count = 0;
  for (const auto& task : tasks)
    if (const double its = bytes(task); its > 0) {
      sum_bytes += its;
      sum_s += took_ns(task) * 1e-9;
      ++count;
    }
  if (count < kEnoughQueued || sum_s <= 0) return std::nullopt;
  return sum_bytes / sum_s;
}

auto field(const char* name) {
  return [name](const Json& task) { return task["served"][name].get<double>(); };
}

// What tmpfs does with files: no probe measures it. A file is freed page by page, and a writer's
// copy is made of new pages.
void take_fast_tier(const Json& tasks, sim::TierSpeeds& tiers) {
  const auto freed = rate_of(
      tasks,
      [](const Json& task) {
        const auto& served = task["served"];
        return served["evicted_written_bytes"] == 0 ? served["evicted_bytes"].get<double>() : 0;
      },
      field("evict_ns"));
  if (freed) tiers.free_bytes_per_s = *freed;
  const auto copied = rate_of(
      tasks,
      [](const Json& task) {
        const auto& datasets = task["spec"]["datasets"];
        const bool one = datasets.size() == 1 && datasets[0]["write"] == true;
        return one ? task["served"]["local_bytes"].get<double>() : 0;
      },
      [](const Json& task) {
        const auto& served = task["served"];
        double ns = served["latency_ns"].get<double>();
        for (const char* part : {"queued_ns", "evict_ns", "promote_ns", "fetch_ns"})
          ns -= served[part].get<double>();
        return ns;
      });
  if (copied) tiers.fast_copy_bytes_per_s = *copied;
}

double mean_transfers_s(const Json& tasks) {
  double sum_s = 0;
  for (const auto& task : tasks)
    for (const char* part : {"evict_ns", "promote_ns", "fetch_ns"})
      sum_s += seconds(task["served"][part]);
  return sum_s / static_cast<double>(tasks.size());
}

}  // namespace

double RealRun::tasks_cpu_s() const {
  return std::accumulate(tasks.begin(), tasks.end(), 0.0,
                         [](double sum, const Json& task) { return sum + cpu_s(task); });
}

double RealRun::local_byte_share() const {
  double local = 0, all = 0;
  for (const auto& task : tasks) {
    const auto& served = task["served"];
    const double its_local = served["local_bytes"].get<double>();
    local += its_local;
    all +=
        its_local + served["promoted_bytes"].get<double>() + served["fetched_bytes"].get<double>();
  }
  return local / all;
}

std::set<std::string> RealRun::disturbed() const {
  std::set<std::string> names;
  const auto take = [&](int64_t from_ms, int64_t to_ms) {
    int64_t until_ms = to_ms;
    for (const auto& task : tasks) {
      if (task["submitted_ms"] > to_ms || task["finished_ms"] < from_ms) continue;
      names.insert(task["name"]);
      until_ms = std::max(until_ms, task["finished_ms"].get<int64_t>());
    }
    return until_ms;
  };
  for (const auto& still : standstills) take(still.from_ms, take(still.from_ms, still.to_ms));
  return names;
}

double cpu_s(const Json& task) {
  return seconds(task["exit"]["cpu_user_ns"]) + seconds(task["exit"]["cpu_system_ns"]);
}

void take_slow_tier(const sim::TierSpeeds& before, const sim::TierSpeeds& after,
                    sim::TierSpeeds& tiers) {
  for (const auto figure :
       {&sim::TierSpeeds::promote_bytes_per_s, &sim::TierSpeeds::evict_bytes_per_s,
        &sim::TierSpeeds::promote_start_s, &sim::TierSpeeds::evict_start_s})
    tiers.*figure = (before.*figure + after.*figure) / 2;
}

// A process is there from its start to its end and takes its CPU time of that. What is neither that
// nor the serving of data is the coordinator's, the network's, and the launch's: that part is known
// from tasks that followed others.
bool take_costs(const RealRun& run, const RealRun& smallest, const CpuTime& idle,
                sim::ClusterSpec& spec) {
  std::vector<double> outside_s, beginning_s;
  Json calm = Json::array(), fetched = Json::array();
  const auto disturbed = run.disturbed();
  for (const auto& task : run.tasks) {
    if (disturbed.contains(task["name"])) continue;
    calm.push_back(task);
    if (!was_alone(task, run.tasks)) continue;
    const auto& served = task["served"];
    if (!has_written(task))  // no commit
      outside_s.push_back(task["response_ms"].get<double>() * 1e-3 - serving_s(task) -
                          wall_s(task));
    beginning_s.push_back(wall_s(task) - cpu_s(task));
    if (served["local_bytes"] == 0 && served["promoted_bytes"] == 0) fetched.push_back(task);
  }
  if (outside_s.size() < kEnoughAlone) return false;
  auto& coordinator = spec.coordinator;
  auto& group = spec.groups.front();
  const auto successions = successions_s(calm, mean(outside_s));
  if (successions.size() >= kEnoughQueued)
    group.launch_s = std::max(0.0, mean(successions) + mean(beginning_s));
  coordinator.accept_s = 0;  // the coordinator's two steps are told in one
  coordinator.dispatch_s =
      std::max(0.0, mean(outside_s) + mean(beginning_s) - group.launch_s - coordinator.report_s);
  group.handling_core_s = std::max(0.0, attendance_core_s(run, smallest, idle) - group.launch_s -
                                            sim::kCoresOfTransfer * mean_transfers_s(calm));
  take_fast_tier(calm, group.tiers);
  if (const auto rate = rate_of(fetched, field("fetched_bytes"), field("fetch_ns"))) {
    group.link_bytes_per_s = *rate;
    group.link_latency_s = 0;  // it is in that
  }
  return true;
}

sim::ClusterSpec at_speed_of(const RealRun& run, const RealRun& told_by, sim::ClusterSpec spec) {
  spec.groups.front().handling_core_s *= run.tasks_cpu_s() / told_by.tasks_cpu_s();
  return spec;
}

}  // namespace tierpilot::test
