#include "tools/demo/policy_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "tools/cluster/message_json.h"
#include "tools/demo/cpu_time.h"

namespace tierpilot::demo {
namespace {

using nlohmann::ordered_json;

constexpr size_t kExplainsInFlight = 32;

struct PolicyState {
  ordered_json entry;    // wire::PolicyEntry
  ordered_json learner;  // wire::LearnerState; null when it does not learn
};

Result<PolicyState> policy_state(ClusterConnection& connection, const std::string& name) {
  auto request = connection.cluster().policyShowRequest();
  request.setName(name);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return PolicyState{message_json(answer->getPolicy()), answer->getPolicy().getLearns()
                                                            ? message_json(answer->getLearner())
                                                            : ordered_json(nullptr)};
}

Status use_policy(ClusterConnection& connection, const std::string& name) {
  auto request = connection.cluster().policyUseRequest();
  request.setName(name);
  if (auto answer = connection.call(kj::mv(request)); !answer)
    return tl::unexpected(answer.error());
  return {};
}

struct Load {
  uint64_t busy_unit_ms, capacity_unit_ms, queued, running;
};

Result<Load> load_now(ClusterConnection& connection) {
  auto answer = connection.call(connection.cluster().healthRequest());
  if (!answer) return tl::unexpected(answer.error());
  const auto health = answer->getHealth();
  if (const auto why = health.getDegraded(); why.size() > 0)
    return fail(ErrorCode::kUnavailable, "the coordinator is degraded: " + std::string(why.cStr()));
  return Load{health.getBusyUnitMs(), health.getCapacityUnitMs(), health.getQueued(),
              health.getRunning()};
}

Status show_progress(DemoCluster& cluster, const std::string& policy, size_t total,
                     const tierload::ReplayProgress& replay, Progress& progress) {
  if (auto status = cluster.check(); !status) return status;
  const auto load = load_now(cluster.connection());
  if (!load) return tl::unexpected(load.error());
  const auto state = policy_state(cluster.connection(), policy);
  if (!state) return tl::unexpected(state.error());
  const auto open = std::min<uint64_t>(load->queued + load->running, replay.submitted);
  const auto& reward = state->entry["reward_mean"];
  progress.show(fmt::format("{:<16} {:>4} of {} done, {:>2} running, {:>3} queued, mean reward {}",
                            policy, replay.submitted - open, total, load->running, load->queued,
                            reward.is_null() ? "-" : fmt::format("{:.3f}", reward.get<double>())));
  return {};
}

struct Judged {
  int64_t at_ms;
  std::optional<double> reward;
};

// The last decision of each task, fetched a batch at a time.
Result<std::vector<Judged>> decisions_of(ClusterConnection& connection,
                                         const std::vector<tierload::TaskFacts>& tasks) {
  std::vector<Judged> decisions;
  for (size_t begin = 0; begin < tasks.size(); begin += kExplainsInFlight) {
    const size_t count = std::min(kExplainsInFlight, tasks.size() - begin);
    auto batch = kj::heapArrayBuilder<kj::Promise<void>>(count);
    for (size_t i = begin; i < begin + count; ++i) {
      auto request = connection.cluster().taskExplainRequest();
      request.setId(tasks[i].id);
      batch.add(request.send().then([&decisions](auto&& answer) {
        const auto list = answer.getDecisions();
        if (list.size() == 0) return;
        const auto last = list[list.size() - 1];
        const auto reward = last.getReward().getReward();
        const bool measured = last.hasReward() && last.getReward().hasReward() && reward.isValue();
        decisions.push_back({last.getAtMs(), measured ? std::optional(reward.getValue())
                                                      : std::optional<double>()});
      }));
    }
    if (auto status = connection.wait(kj::joinPromises(batch.finish())); !status)
      return tl::unexpected(status.error());
  }
  std::stable_sort(decisions.begin(), decisions.end(),
                   [](const Judged& a, const Judged& b) { return a.at_ms < b.at_ms; });
  return decisions;
}

std::optional<double> mean_of(const std::vector<std::optional<double>>& values, size_t begin,
                              size_t end) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = begin; i < end; ++i)
    if (values[i]) sum += *values[i], ++count;
  return count ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

// After the replay: what only the coordinator knows.
Status add_judgement(DemoCluster& cluster, const std::vector<tierload::TaskFacts>& tasks,
                     const PolicyState& before, PolicyRun& run) {
  auto decisions = decisions_of(cluster.connection(), tasks);
  if (!decisions) return tl::unexpected(decisions.error());
  for (const auto& decision : *decisions) run.reward_list.push_back(decision.reward);
  run.rewards = reward_stats(run.reward_list);
  auto after = policy_state(cluster.connection(), run.name);
  if (!after) return tl::unexpected(after.error());
  run.decision_us = after->entry["decision_us"];
  run.fallbacks =
      after->entry["fallbacks"].get<uint64_t>() - before.entry["fallbacks"].get<uint64_t>();
  run.learner_start = before.learner;
  run.learner_end = after->learner;
  return {};
}

Status replay_and_measure(DemoCluster& cluster, const tierload::Workload& workload,
                          const std::string& program, Progress& progress, PolicyRun& run) {
  auto& connection = cluster.connection();
  const auto before = policy_state(connection, run.name);
  if (!before) return tl::unexpected(before.error());
  const auto load_before = load_now(connection);
  if (!load_before) return tl::unexpected(load_before.error());
  const auto cpus_before = CpuTime::now();
  const int64_t start_ns = system_clock().boot_ns();
  const auto replay = tierload::replay(connection, workload, program, [&](const auto& submitted) {
    return show_progress(cluster, run.name, workload.tasks.size(), submitted, progress);
  });
  if (!replay) return tl::unexpected(replay.error());
  run.wall_s = static_cast<double>(system_clock().boot_ns() - start_ns) / 1e9;
  run.cpus_busy = busy_share(cpus_before, CpuTime::now());
  const auto load_after = load_now(connection);
  if (!load_after) return tl::unexpected(load_after.error());
  const auto busy = static_cast<double>(load_after->busy_unit_ms - load_before->busy_unit_ms);
  const auto capacity =
      static_cast<double>(load_after->capacity_unit_ms - load_before->capacity_unit_ms);
  if (capacity > 0) run.utilisation = busy / capacity;
  run.summary = tierload::summarize(replay->tasks);
  run.latest_submit_ms = replay->latest_submit_ms;
  for (const auto& task : replay->tasks)
    if (!task.succeeded)
      run.failures.push_back(fmt::format("task {} ({}) on {}: {}", task.id, task.name,
                                         task.node.empty() ? "no node" : task.node, task.reason));
  run.tasks = replay->tasks;
  return add_judgement(cluster, run.tasks, *before, run);
}

}  // namespace

RewardStats reward_stats(const std::vector<std::optional<double>>& rewards) {
  const size_t count = rewards.size(), quarter = (count + 3) / 4;
  RewardStats stats;
  stats.measured = static_cast<size_t>(
      std::count_if(rewards.begin(), rewards.end(), [](const auto& r) { return r.has_value(); }));
  stats.mean = mean_of(rewards, 0, count);
  stats.first_quarter = mean_of(rewards, 0, quarter);
  stats.last_quarter = mean_of(rewards, count - quarter, count);
  return stats;
}

Result<PolicyRun> run_policy(DemoCluster& cluster, const std::string& policy,
                             const tierload::Workload& workload, const std::string& program,
                             Progress& progress) {
  auto& connection = cluster.connection();
  PolicyRun run;
  run.name = policy;
  progress.show(fmt::format("{:<16} registering {} datasets", policy, workload.datasets.size()));
  auto nodes = tierload::nodes_up(connection);
  if (!nodes) return tl::unexpected(nodes.error());
  auto status = use_policy(connection, policy);
  if (status) status = tierload::register_datasets(connection, workload, *nodes);
  if (status) status = replay_and_measure(cluster, workload, program, progress, run);
  if (status) status = tierload::remove_datasets(connection, workload);
  if (status) status = cluster.wait_until_empty();
  if (!status) return fail(status.error().code, policy + ": " + status.error().message);
  return run;
}

}  // namespace tierpilot::demo
