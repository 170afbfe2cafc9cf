#include "tools/demo/quality/allocator_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "rpc/task_wire.h"

namespace tierpilot::demo {
namespace {

constexpr int64_t kPollMs = 500;
constexpr double kMove = 0.05;

double now_s() {
  return static_cast<double>(system_clock().wall_ms()) / 1e3;
}

std::vector<std::string> command_of(const TrainingPlan& plan, const TrainingPrograms& programs) {
  const auto iterations = std::to_string(plan.iterations), seed = std::to_string(plan.seed);
  if (plan.in_cpp)
    return {programs.trainer, "residual", "--losses", "--steps", iterations, "--seed", seed,
            "--samples",      "4000",     "--batch",  "1500"};
  return {"/usr/bin/python3", programs.script.file, plan.name, iterations, seed};
}

Result<uint64_t> submit(ClusterConnection& connection, const TrainingPlan& plan,
                        const TrainingPrograms& programs, const TrainingUnits& units) {
  TaskSpec spec;
  spec.name = plan.name;
  spec.argv = command_of(plan, programs);
  spec.env = {{"PYTHONPATH", programs.script.python_path},
              {"PYTHONDONTWRITEBYTECODE", "1"},
              {"OMP_WAIT_POLICY", "PASSIVE"}};  // who waits must not use up the share
  spec.units = 1;
  spec.max_units = plan.in_cpp ? units.per_cpu : units.all;
  auto request = connection.cluster().submitRequest();
  request.setRequestId(fmt::format("{}-{}", plan.name, system_clock().boot_ns()));
  write_spec(spec, request.initTasks(1)[0]);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return answer->getTasks()[0];
}

Result<std::string> log_of(ClusterConnection& connection, uint64_t id) {
  std::string text;
  for (;;) {
    auto request = connection.cluster().taskLogRequest();
    request.setId(id);
    request.setStream("stdout");
    request.setOffset(text.size());
    request.setMaxBytes(1 << 20);
    auto answer = connection.call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    const auto data = answer->getData();
    text.append(reinterpret_cast<const char*>(data.begin()), data.size());
    if (answer->getEnd() || data.size() == 0) return text;
  }
}

class Run {
 public:
  Run(DemoCluster& cluster, const std::vector<TrainingPlan>& plans)
      : cluster_(cluster), plans_(plans), ids_(plans.size(), 0), now_(plans.size()) {
    run_.jobs.resize(plans.size());
    for (size_t i = 0; i < plans.size(); ++i) now_[i].name = run_.jobs[i].name = plans[i].name;
    run_.begin_s = now_s();
  }

  Status submit_due(const TrainingPrograms& programs, const TrainingUnits& units) {
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (ids_[i] != 0 || now_s() < run_.begin_s + plans_[i].arrival_s) continue;
      const auto id = submit(cluster_.connection(), plans_[i], programs, units);
      if (!id) return tl::unexpected(id.error());
      ids_[i] = *id;
      run_.jobs[i].submitted_s = now_s();
    }
    return {};
  }

  Status look() {
    CoresThen then{now_s(), {}};
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (ids_[i] != 0 && !has_ended(i))
        if (auto status = look_at(i); !status) return status;
      then.cores.push_back(has_ended(i) ? 0 : now_[i].cores);
    }
    count_moves(then);
    run_.cores.push_back(std::move(then));
    return {};
  }

  bool all_ended() const {
    for (size_t i = 0; i < plans_.size(); ++i)
      if (!has_ended(i)) return false;
    return true;
  }
  const std::vector<JobNow>& now() const { return now_; }
  double since_s() const { return now_s() - run_.begin_s; }

  Result<AllocatorRun> finish(const std::string& name) {
    run_.name = name;
    run_.end_s = now_s();
    for (size_t i = 0; i < plans_.size(); ++i) {
      auto text = log_of(cluster_.connection(), ids_[i]);
      if (!text) return tl::unexpected(text.error());
      run_.jobs[i].points = read_training_log(*text);
    }
    return std::move(run_);
  }

 private:
  bool has_ended(size_t i) const {
    const auto& state = now_[i].state;
    return state == "succeeded" || state == "failed" || state == "cancelled";
  }
  Status look_at(size_t i) {
    auto request = cluster_.connection().cluster().taskShowRequest();
    request.setId(ids_[i]);
    auto answer = cluster_.connection().call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    const auto task = answer->getTask();
    auto& now = now_[i];
    now.state = text(task.getState());
    now.cores = task.hasShare() ? task.getShare().getCores() : 0;
    if (task.hasShare() && task.getShare().getLossLeft().isValue())
      now.loss_left = task.getShare().getLossLeft().getValue();
    now.losses.clear();
    for (const auto report : task.getProgress()) {
      if (report.getLoss().isValue()) now.losses.push_back(report.getLoss().getValue());
      now.iteration = report.getIteration();
      now.iterations = report.getIterations();
    }
    if (now.state == "failed" || now.state == "cancelled")
      run_.failures.push_back(fmt::format("{}: {}", now.name, text(task.getReason())));
    return {};
  }
  void count_moves(const CoresThen& then) {
    if (run_.cores.empty()) return;
    const auto& before = run_.cores.back().cores;
    for (size_t i = 0; i < before.size(); ++i)
      if (before[i] > 0 && then.cores[i] > 0 && std::abs(before[i] - then.cores[i]) > kMove)
        ++run_.moves;
  }

  DemoCluster& cluster_;
  const std::vector<TrainingPlan>& plans_;
  std::vector<uint64_t> ids_;
  std::vector<JobNow> now_;
  AllocatorRun run_;
};

}  // namespace

std::vector<TrainingPlan> training_plans(double scale, double gap_s, uint64_t seed) {
  // Measured on one core of the machine of docs/results/quality.md; what comes first matters less
  // than that curves of all shapes meet.
  std::vector<TrainingPlan> plans{
      {"linear", 205, 0}, {"kmeans", 105, 0}, {"logistic", 188, 0}, {"trees", 82, 0},
      {"mlp", 148, 0},    {"lda", 98, 0},     {"svm", 70, 0},       {"convnet", 124, 0, true}};
  for (size_t i = 0; i < plans.size(); ++i) {
    plans[i].seed = seed;
    plans[i].arrival_s = gap_s * static_cast<double>(i);
    plans[i].iterations = std::max(50u, static_cast<uint32_t>(plans[i].iterations * scale));
  }
  return plans;
}

Result<AllocatorRun> run_allocator(DemoCluster& cluster, const std::string& allocator,
                                   const TrainingPrograms& programs,
                                   const std::vector<TrainingPlan>& plans,
                                   const TrainingUnits& units, const LiveView& show) {
  Run run(cluster, plans);
  while (!run.all_ended()) {
    auto status = cluster.check();
    if (status) status = run.submit_due(programs, units);
    if (status) status = run.look();
    if (!status) return tl::unexpected(status.error());
    show(run.since_s(), run.now());
    usleep(kPollMs * 1000);
  }
  return run.finish(allocator);
}

}  // namespace tierpilot::demo
