#include "tools/demo/sharing/sharing_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text/json_text.h"
#include "rpc/task_wire.h"

namespace tierpilot::demo {
namespace {

constexpr int64_t kPollMs = 500;
constexpr double kMilli = 1000;

double now_s() {
  return static_cast<double>(system_clock().wall_ms()) / 1e3;
}

std::optional<double> value_of(wire::Measure::Reader measure) {
  return measure.isValue() ? std::optional(measure.getValue()) : std::nullopt;
}

TaskSpec spec_of(const SharingPlan& plan, const TrainingScript& script) {
  TaskSpec spec;
  spec.name = plan.name;
  spec.argv = {"/usr/bin/python3", script.file, plan.name, std::to_string(plan.iterations)};
  spec.env = {{"PYTHONPATH", script.python_path},
              {"PYTHONDONTWRITEBYTECODE", "1"},
              {"OMP_WAIT_POLICY", "PASSIVE"}};
  spec.share.wanted = true;
  spec.share.latency_sensitive = plan.latency_sensitive;
  spec.share.model_card = plan.card;
  return spec;
}

class Run {
 public:
  Run(DemoCluster& cluster, std::string policy, const std::vector<SharingPlan>& plans)
      : cluster_(cluster) {
    run_.policy = std::move(policy);
    for (const auto& plan : plans) run_.jobs.emplace_back().plan = plan;
    run_.begin_s = now_s();
  }

  Status submit_due(const TrainingScript& script, const std::map<std::string, double>& promises_s) {
    for (auto& job : run_.jobs) {
      if (job.id != 0 || since_s() < job.plan.arrival_s) continue;
      auto spec = spec_of(job.plan, script);
      job.submitted_s = now_s();
      if (const auto promise = promises_s.find(job.plan.name); promise != promises_s.end()) {
        spec.share.promise_ms = static_cast<int64_t>(promise->second * 1e3);
        job.promise_s = promise->second;
      }
      auto id = submit(spec);
      if (!id && id.error().code == ErrorCode::kExhausted && job.promise_s) {
        job.refused_promise_s = std::exchange(job.promise_s, std::nullopt);
        job.refusal = id.error().message;
        spec.share.promise_ms = 0;
        id = submit(spec);
      }
      if (!id) return tl::unexpected(id.error());
      job.id = *id;
    }
    return {};
  }

  Status look() {
    for (auto& job : run_.jobs)
      if (job.id != 0 && !job.has_ended())
        if (auto status = look_at(job); !status) return status;
    return {};
  }
  bool all_ended() const {
    return std::all_of(run_.jobs.begin(), run_.jobs.end(),
                       [](const SharingJob& job) { return job.has_ended(); });
  }
  double since_s() const { return now_s() - run_.begin_s; }
  const std::vector<SharingJob>& jobs() const { return run_.jobs; }

  Result<SharingRun> finish(double units) {
    run_.units = units;
    run_.end_s = 0;
    for (const auto& job : run_.jobs) run_.end_s = std::max(run_.end_s, job.finished_s);
    auto answer = cluster_.connection().call(cluster_.connection().cluster().nodeListRequest());
    if (!answer) return tl::unexpected(answer.error());
    run_.enforcement = "CPU affinity and tokens";
    for (const auto node : answer->getNodes())
      for (const auto limit : node.getInfo().getLimits())
        if (text(limit.getName()) == "cpu" && limit.getOn()) run_.enforcement = "cgroup cpu.max";
    return std::move(run_);
  }

 private:
  Result<uint64_t> submit(const TaskSpec& spec) {
    auto request = cluster_.connection().cluster().submitRequest();
    request.setRequestId(fmt::format("{}-{}", spec.name, system_clock().boot_ns()));
    write_spec(spec, request.initTasks(1)[0]);
    auto answer = cluster_.connection().call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    return answer->getTasks()[0];
  }

  Status look_at(SharingJob& job) {
    auto request = cluster_.connection().cluster().taskShowRequest();
    request.setId(job.id);
    auto answer = cluster_.connection().call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    const auto task = answer->getTask();
    job.state = text(task.getState());
    job.reason = text(task.getReason());
    job.finished_s = static_cast<double>(task.getFinishedMs()) / 1e3;
    for (const auto report : task.getProgress()) job.iteration = report.getIteration();
    look_at_try(task, job);
    if (!task.hasUnitShare()) return {};
    const auto share = task.getUnitShare();
    job.share = job.has_ended() || job.state == "queued" ? 0 : share.getMilli() / kMilli;
    job.predicted_utilisation = share.getPredictedMilli() / kMilli;
    if (const auto used = value_of(share.getUsedMilli())) job.measured_utilisation = *used / kMilli;
    if (const auto predicted = value_of(share.getPredictedS())) job.predicted_s = predicted;
    job.left_s = value_of(share.getLeftS());
    job.preemptions = share.getPreemptions();
    return {};
  }

  static void look_at_try(wire::Task::Reader task, SharingJob& job) {
    auto& now = job.last_try;
    if (task.getAttempt() != now.attempt) {
      job.before.ran_s += now.ran_s;
      job.before.cpu_s += now.cpu_s;
      now = {.attempt = task.getAttempt()};
    }
    for (const auto report : task.getProgress())
      if (report.getAttempt().getAttempt() == now.attempt)
        now.cpu_s = static_cast<double>(report.getCpuNs()) / 1e9;
    if (task.hasExit() && job.has_ended())
      now.cpu_s =
          static_cast<double>(task.getExit().getCpuUserNs() + task.getExit().getCpuSystemNs()) /
          1e9;
    if (task.getStartedMs() == 0) return;
    const auto until_ms = job.has_ended() ? task.getFinishedMs() : system_clock().wall_ms();
    now.ran_s = static_cast<double>(until_ms - task.getStartedMs()) / 1e3;
  }

  DemoCluster& cluster_;
  SharingRun run_;
};

// What the program prints; nothing where it fails.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  std::array<char, 4096> part{};
  while (pipe && std::fgets(part.data(), part.size(), pipe.get())) text += part.data();
  return text;
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace

Result<std::vector<SharingPlan>> sharing_plans(const TrainingScript& script, double scale,
                                               double gap_s) {
  const auto text = output_of(
      fmt::format("PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={} /usr/bin/python3 {} --cards {}",
                  quoted(script.python_path), quoted(script.file), scale));
  const auto cards = parse_json_or_discard<nlohmann::ordered_json>(text);
  if (!cards.is_object() || cards.empty())
    return fail(ErrorCode::kInvalid, fmt::format("'{}' tells no model cards", script.file));
  std::vector<SharingPlan> plans;
  for (const auto& [name, card] : cards.items()) {
    auto& plan = plans.emplace_back();
    plan.name = name;
    plan.card = card.dump();
    plan.iterations = card["job"]["iterations"].get<uint32_t>();
    plan.latency_sensitive = plans.size() % 2 == 0;
    plan.arrival_s = gap_s * static_cast<double>(plans.size() - 1);
  }
  return plans;
}

Result<SharingRun> run_sharing(DemoCluster& cluster, const std::string& policy,
                               const TrainingScript& script, const std::vector<SharingPlan>& plans,
                               const std::map<std::string, double>& promises_s, double units,
                               const SharingView& show) {
  Run run(cluster, policy, plans);
  while (!run.all_ended()) {
    auto status = cluster.check();
    if (status) status = run.submit_due(script, promises_s);
    if (status) status = run.look();
    if (!status) return tl::unexpected(status.error());
    show(run.since_s(), run.jobs());
    usleep(kPollMs * 1000);
  }
  return run.finish(units);
}

}  // namespace tierpilot::demo
