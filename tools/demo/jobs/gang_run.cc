#include "tools/demo/jobs/gang_run.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "rpc/task_wire.h"
#include "tools/cluster/message_json.h"

namespace tierpilot::demo {
namespace {

constexpr int64_t kPollMs = 250;
constexpr uint32_t kMostRestarts = 100;

double now_s() {
  return static_cast<double>(system_clock().boot_ns()) / 1e9;
}

double seconds_of(int64_t wall_ms) {
  return static_cast<double>(wall_ms) / 1e3;
}

void set_command(const GangPlan& plan, const JobPrograms& programs, TaskSpec& spec) {
  const auto steps = std::to_string(plan.steps);
  spec.env = {{"OMP_NUM_THREADS", "1"}, {"GLOO_SOCKET_IFNAME", "lo"}};
  if (plan.model.empty()) {
    spec.argv = {"/usr/bin/python3", programs.script.file, steps};
    spec.env.emplace_back("PYTHONPATH", programs.script.python_path);
    spec.env.emplace_back("PYTHONDONTWRITEBYTECODE", "1");
  } else {
    // At a pace at which a few cores can carry all ranks.
    spec.argv = {programs.trainer, plan.model, "--steps",        steps,
                 "--step-ms",      "40",       "--save-every-s", "1"};
  }
}

TaskSpec spec_of(const GangPlan& plan, const JobPrograms& programs) {
  TaskSpec spec;
  spec.name = plan.name;
  set_command(plan, programs, spec);
  if (!plan.after.empty()) spec.after = {plan.after};
  spec.gang.ranks = plan.ranks;
  spec.gang.engine = plan.gpus_per_rank > 0 ? Engine::kGpu : Engine::kCpu;
  spec.gang.gpus_per_rank = plan.gpus_per_rank;
  spec.gang.max_restarts = kMostRestarts;
  spec.gang.estimate_ms = 60'000;
  return spec;
}

// The number behind "loss " in what rank 0 wrote.
std::optional<double> last_loss(const std::string& log) {
  const auto at = log.rfind("loss ");
  if (at == std::string::npos) return std::nullopt;
  char* end = nullptr;
  const char* begin = log.c_str() + at + 5;
  const double loss = std::strtod(begin, &end);
  return end == begin ? std::nullopt : std::optional(loss);
}

class Run {
 public:
  Run(DemoCluster& cluster, const std::string& name, Failures failures)
      : cluster_(cluster), failures_(std::move(failures)) {
    run_.name = name;
  }

  Status submit(const std::vector<GangPlan>& plans, const JobPrograms& programs) {
    auto request = cluster_.connection().cluster().submitRequest();
    request.setRequestId(fmt::format("{}-{}", run_.name, system_clock().boot_ns()));
    auto tasks = request.initTasks(static_cast<unsigned>(plans.size()));
    for (unsigned i = 0; i < tasks.size(); ++i) write_spec(spec_of(plans[i], programs), tasks[i]);
    auto answer = cluster_.connection().call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    begin_s_ = last_poll_s_ = now_s();
    for (const uint64_t id : answer->getTasks()) ids_.push_back(id);
    ids_.resize(std::min(ids_.size(), plans.size()));
    watched_.resize(ids_.size());
    for (size_t i = 0; i < ids_.size(); ++i) {
      GangJob job;
      job.name = plans[i].name;
      job.ranks = plans[i].ranks;
      job.units_per_rank = 1 + plans[i].gpus_per_rank;
      run_.jobs.push_back(std::move(job));
    }
    return {};
  }

  Status look() {
    const double at_s = now_s();
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (has_ended(run_.jobs[i])) continue;
      auto request = cluster_.connection().cluster().taskShowRequest();
      request.setId(ids_[i]);
      auto answer = cluster_.connection().call(kj::mv(request));
      if (!answer) return tl::unexpected(answer.error());
      look_at(i, answer->getTask(), at_s);
    }
    last_poll_s_ = at_s;
    run_.wall_s = at_s - begin_s_;
    constexpr unsigned kRowRemapped = 63;
    if (failures_.gpu && run_.xids == 0 && run_.wall_s > failures_.gpu->first_after_s)
      report_xid(kRowRemapped);
    return {};
  }

  bool all_ended() const { return std::all_of(run_.jobs.begin(), run_.jobs.end(), has_ended); }
  const GangRun& now() const { return run_; }

  Result<GangRun> finish() {
    for (size_t i = 0; i < ids_.size(); ++i) {
      auto request = cluster_.connection().cluster().taskLogRequest();
      request.setId(ids_[i]);
      request.setStream("stdout");
      auto answer = cluster_.connection().call(kj::mv(request));
      if (!answer) continue;  // it never ran
      const auto data = answer->getData();
      run_.jobs[i].loss = last_loss({reinterpret_cast<const char*>(data.begin()), data.size()});
    }
    auto units = cluster_.connection().call(cluster_.connection().cluster().unitListRequest());
    if (!units) return tl::unexpected(units.error());
    run_.units = messages_json(units->getUnits());
    run_.cluster_units = units->getUnits().size();
    return std::move(run_);
  }

 private:
  // What is known of a job's try.
  struct Watched {
    uint32_t attempt = 0;
    bool ran = false;
    double saved_s = 0;  // when it was begun, or had saved last
    uint64_t saved_iteration = 0;
    std::optional<double> training_since_s;  // its first checkpoint
    bool failed = false;                     // was made to
  };

  static bool has_ended(const GangJob& job) {
    return job.state == "succeeded" || job.state == "failed" || job.state == "cancelled";
  }

  void look_at(size_t i, wire::Task::Reader task, double at_s) {
    auto& job = run_.jobs[i];
    auto& watched = watched_[i];
    job.state = text(task.getState());
    job.reason = text(task.getReason());
    job.restarts = task.getRestarts();
    for (const auto report : task.getProgress()) {
      job.iteration = report.getIteration();
      job.iterations = report.getIterations();
    }
    if (task.hasCheckpointing()) {
      job.checkpoints = task.getCheckpointing().getTaken();
      job.stall_ms = task.getCheckpointing().getStallMs().getValue();
    }
    job.submitted_s = seconds_of(task.getSubmittedMs());
    if (task.getStartedMs() != 0) job.started_s = seconds_of(task.getStartedMs());
    job.finished_s = seconds_of(task.getFinishedMs());
    const bool runs = job.state == "running";
    if (watched.ran && (task.getAttempt() != watched.attempt || !runs) &&
        job.state != "succeeded") {
      job.lost_unit_s += job.ranks * (last_poll_s_ - watched.saved_s);
      watched.ran = false;
    }
    if (task.getAttempt() != watched.attempt) watched = {.attempt = task.getAttempt()};
    if (!runs) return;
    if (!std::exchange(watched.ran, true)) watched.saved_s = at_s;
    run_.busy_unit_s += job.ranks * job.units_per_rank * (at_s - last_poll_s_);
    for (const auto checkpoint : task.getCheckpoints()) {
      if (checkpoint.getAttempt() != watched.attempt ||
          checkpoint.getIteration() <= watched.saved_iteration)
        continue;
      watched.saved_iteration = checkpoint.getIteration();
      watched.saved_s = (last_poll_s_ + at_s) / 2;  // some time since the last look
      if (!watched.training_since_s) watched.training_since_s = at_s;
    }
    fail(task, watched, at_s);
  }

  // Once in a try, its rank on what is bad, if there is one and it is time.
  void fail(wire::Task::Reader task, Watched& watched, double at_s) {
    if (watched.failed || !watched.training_since_s) return;
    const double trained_s = at_s - *watched.training_since_s;
    for (const auto rank : task.getRanks()) {
      if (failures_.unit && trained_s >= failures_.unit->fails_after_s && is_on_bad_unit(rank) &&
          ::kill(rank.getPid(), SIGKILL) == 0) {
        ++run_.kills;
        watched.failed = true;
      } else if (failures_.gpu && trained_s >= failures_.gpu->fails_after_s &&
                 is_on_bad_gpu(rank)) {
        constexpr unsigned kContainedMemoryError = 94;
        report_xid(kContainedMemoryError);
        watched.failed = true;
      }
    }
  }

  bool is_on_bad_unit(wire::Task::Reader rank) const {
    if (text(rank.getNode()) != failures_.unit->node || rank.getPid() <= 1) return false;
    for (const uint32_t unit : rank.getCpuUnits())
      if (unit == failures_.unit->cpu_unit) return true;
    return false;
  }

  bool is_on_bad_gpu(wire::Task::Reader rank) const {
    if (text(rank.getNode()) != failures_.gpu->node) return false;
    for (const auto gpu : rank.getGpus())
      if (text(gpu) == failures_.gpu->uuid) return true;
    return false;
  }

  void report_xid(unsigned number) {
    failures_.gpu->report_xid(number);
    ++run_.xids;
  }

  DemoCluster& cluster_;
  Failures failures_;
  std::vector<uint64_t> ids_;
  std::vector<Watched> watched_;
  double begin_s_ = 0, last_poll_s_ = 0;
  GangRun run_;
};

}  // namespace

std::vector<GangPlan> gang_plans(double scale, bool gpus) {
  // Five ranks at a time, where there are six units: one that fails can be left alone.
  std::vector<GangPlan> plans{{"mlp", "mlp", 3, 150, ""},
                              {"convnet", "conv", 2, 150, ""},
                              {"logistic", "logistic", 3, 150, "mlp"},
                              {"pytorch", "", 2, 150, "convnet", gpus ? 1u : 0u}};
  for (auto& plan : plans) plan.steps = std::max(20u, static_cast<uint32_t>(plan.steps * scale));
  return plans;
}

Result<GangRun> run_gangs(DemoCluster& cluster, const std::string& name,
                          const JobPrograms& programs, const std::vector<GangPlan>& plans,
                          const Failures& failures, double patience_s, const GangView& show) {
  Run run(cluster, name, failures);
  if (auto status = run.submit(plans, programs); !status) return tl::unexpected(status.error());
  while (!run.all_ended()) {
    usleep(kPollMs * 1000);
    if (auto alive = cluster.check(); !alive) return tl::unexpected(alive.error());
    if (auto status = run.look(); !status) return tl::unexpected(status.error());
    show(run.now());
    if (run.now().wall_s > patience_s)
      return fail(ErrorCode::kTimeout,
                  fmt::format("{}: the jobs have not ended within {:.0f} s", name, patience_s));
  }
  return run.finish();
}

}  // namespace tierpilot::demo
