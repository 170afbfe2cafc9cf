#include "tests/system/truth/simulated_twin.h"

#include <fmt/format.h>

#include <map>
#include <stdexcept>
#include <vector>

#include "policies/placement/registry.h"

namespace tierpilot::test {
namespace {

sim::Workload simulated_workload(const Json& plan, const Json& tasks, double int32_to_float) {
  sim::Workload workload;
  workload.users = {"all"};
  std::map<std::string, uint32_t> index;
  for (const auto& dataset : plan["datasets"]) {
    index[dataset["name"]] = static_cast<uint32_t>(workload.datasets.size());
    workload.datasets.push_back({dataset["bytes"].get<uint64_t>()});
  }
  std::map<std::string, double> seconds;
  for (const auto& task : tasks) seconds[task["name"]] = cpu_s(task);
  for (const auto& planned : plan["tasks"]) {
    sim::Task task;
    task.arrival_ns = planned["arrival_ms"].get<int64_t>() * 1'000'000;
    task.operations = seconds.at(planned["name"]) * sim::kReferenceOperationsPerSecond;
    task.declared_operations = planned["float_operations"].get<double>() +
                               planned["int_operations"].get<double>() * int32_to_float;
    task.first_use = static_cast<uint32_t>(workload.uses.size());
    for (const auto& use : planned["datasets"])
      workload.uses.push_back({index.at(use["name"]), use["mode"] == "write"});
    task.use_count = static_cast<uint32_t>(workload.uses.size()) - task.first_use;
    workload.tasks.push_back(task);
  }
  return workload;
}

struct PartsOfRun final : sim::Listener {
  // A real start is reported when the process is there, a simulated one when it is to be made.
  PartsOfRun(double launch_s, size_t tasks) : launch_s(launch_s), of_task(tasks) {}
  void decided(sim::Attempt, const View&, const Decision&) override {}
  void served(sim::Attempt attempt, const ServiceMeasure& measure, const RewardParts&) override {
    of_task[attempt.task].serving = measure.service_ns * 1e-9;
  }
  void abandoned(sim::Attempt) override {}
  void finished(sim::Attempt attempt, const sim::TaskTimes& times) override {
    Parts& parts = of_task[attempt.task];
    parts.waiting = times.wait_s + launch_s - parts.serving;
    parts.running = times.response_s - times.wait_s - launch_s;
  }
  const double launch_s;
  std::vector<Parts> of_task;
};

}  // namespace

std::string Parts::text() const {
  return fmt::format("{:.1f} ms (waiting {:.1f}, serving {:.1f}, running {:.1f})",
                     response_s() * 1e3, waiting * 1e3, serving * 1e3, running * 1e3);
}

Parts mean_without(const std::set<std::string>& left_out, const PartsByTask& tasks) {
  Parts sum;
  double count = 0;
  for (const auto& [name, parts] : tasks) {
    if (left_out.contains(name)) continue;
    sum.waiting += parts.waiting;
    sum.serving += parts.serving;
    sum.running += parts.running;
    ++count;
  }
  return {sum.waiting / count, sum.serving / count, sum.running / count};
}

PartsByTask real_parts(const Json& tasks) {
  PartsByTask parts;
  for (const auto& task : tasks) {
    const double wait_s = task["wait_ms"].get<double>() * 1e-3;
    const double serving_s = task["served"]["latency_ns"].get<double>() * 1e-9;
    parts[task["name"]] = {.waiting = wait_s - serving_s,
                           .serving = serving_s,
                           .running = task["response_ms"].get<double>() * 1e-3 - wait_s};
  }
  return parts;
}

double Twin::local_byte_share() const {
  const auto all = result.hit_bytes + result.promoted_bytes + result.fetched_bytes;
  return static_cast<double>(result.hit_bytes) / static_cast<double>(all);
}

Twin simulate_twin(const sim::ClusterSpec& cluster, const std::string& policy_name,
                   const Json& plan, const RealRun& real, double int32_to_float) {
  const auto policy = make_policy(policy_name);
  if (!policy) throw std::runtime_error(policy.error().message);
  const auto workload = simulated_workload(plan, real.tasks, int32_to_float);
  PartsOfRun parts(cluster.groups.front().launch_s, workload.tasks.size());
  auto result = sim::simulate(cluster, workload, **policy, {.listener = &parts});
  if (!result) throw std::runtime_error(result.error().message);
  Twin twin{std::move(*result), {}};
  for (size_t i = 0; i < parts.of_task.size(); ++i)
    twin.tasks[plan["tasks"][i]["name"]] = parts.of_task[i];
  return twin;
}

}  // namespace tierpilot::test
