#include "policies/sim/sharing/time_simulation.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>

namespace tierpilot::sharing {
namespace {

struct Running {
  const TimedJob* job = nullptr;
  size_t unit = 0;
  uint32_t milli = 0;
  double left_s = 0;     // of work, if nothing held it back
  double started_s = 0;  // this time
  double speed = 0;
};

struct Waiting {
  const TimedJob* job = nullptr;
  double left_s = 0;
  bool ran = false;  // before it was preempted
};

class Simulation {
 public:
  Simulation(const TimedWorkload& workload, SharePolicy& policy, const TimedRules& rules)
      : workload_(workload), policy_(policy), rules_(rules) {}

  TimedRun run() {
    size_t next = 0;
    double adjust_s = rules_.period_s;
    const double last_arrival_s = workload_.jobs.back().arrival_s;
    while (next < workload_.jobs.size() || !running_.empty() || !queue_.empty()) {
      double until_s = adjust_s;
      if (next < workload_.jobs.size()) until_s = std::min(until_s, workload_.jobs[next].arrival_s);
      for (const auto& [id, running] : running_)
        until_s = std::min(until_s, now_s_ + running.left_s / running.speed);
      advance(until_s, last_arrival_s);
      bool changed = end_done();
      while (next < workload_.jobs.size() && workload_.jobs[next].arrival_s <= now_s_) {
        arrive(workload_.jobs[next++]);
        changed = true;
      }
      if (now_s_ >= adjust_s) {
        adjust_s = now_s_ + rules_.period_s;
        adjust();
        changed = true;
      }
      if (changed) start();
    }
    return result(last_arrival_s);
  }

 private:
  // A little of what is left rounds to nothing.
  static constexpr double kDone_s = 1e-6;

  void advance(double until_s, double last_arrival_s) {
    const double counted_s =
        std::max(0.0, std::min(until_s, last_arrival_s) - std::min(now_s_, last_arrival_s));
    for (auto& [id, running] : running_) {
      running.left_s -= (until_s - now_s_) * running.speed;
      const double used = running.speed * running.job->need_milli / kWholeUnit;
      used_s_ += used * counted_s;
      given_s_ += running.milli * counted_s / kWholeUnit;
      if (running.job->job_class == JobClass::kBestEffort) best_effort_s_ += used * counted_s;
      const double by_share = speed_with(running.milli, running.job->need_milli);
      slowed_s_ += (1 - running.speed / by_share) * (until_s - now_s_);
      ran_s_ += until_s - now_s_;
    }
    now_s_ = until_s;
  }

  bool end_done() {
    const size_t before = running_.size();
    for (auto it = running_.begin(); it != running_.end();) {
      const auto& [id, running] = *it;
      if (running.left_s > kDone_s) {
        ++it;
        continue;
      }
      const double took_s = now_s_ - running.job->arrival_s;
      if (promised_.contains(id) && took_s <= running.job->promise_s) ++result_.kept;
      if (running.job->job_class == JobClass::kBestEffort) {
        best_effort_sum_s_ += took_s;
        ++best_effort_;
      }
      it = running_.erase(it);
    }
    if (running_.size() == before) return false;
    set_speeds();
    return true;
  }

  void arrive(const TimedJob& job) {
    if (job.promise_s < kNoPromise) {
      ++result_.asked;
      std::vector<WaitingJob> ahead;
      for (const auto& waiting : queue_) ahead.push_back(as_waiting(waiting));
      promised_[job.id] = true;
      if (policy_.admit(nodes(), ahead, as_waiting({&job, job.run_s})).admitted)
        ++result_.made;
      else
        promised_.erase(job.id);
    }
    queue_.push_back({&job, job.run_s});
  }

  double promise_left_s(const TimedJob& job) const {
    return promised_.contains(job.id) ? job.arrival_s + job.promise_s - now_s_ : kNoPromise;
  }

  WaitingJob as_waiting(const Waiting& waiting) const {
    const auto& job = *waiting.job;
    WaitingJob value;
    value.id = job.id;
    value.job_class = job.job_class;
    value.model = std::to_string(job.model);
    value.predicted["unit"] = job.predicted;
    if (waiting.ran) {  // its pace is known
      auto& predicted = value.predicted["unit"];
      predicted.milli = job.need_milli;
      predicted.run_s = predicted.run_upper_s = waiting.left_s;
    }
    value.promise_left_s = promise_left_s(job);
    value.waited_s = now_s_ - job.arrival_s;
    return value;
  }

  LiveJob as_live(const Running& running) const {
    const auto& job = *running.job;
    const double elapsed_s = now_s_ - running.started_s;
    const bool seen = elapsed_s >= rules_.seen_after_s;
    const double worked_s = job.run_s - running.left_s;
    LiveJob value;
    value.id = job.id;
    value.job_class = job.job_class;
    value.model = std::to_string(job.model);
    value.share.milli = running.milli;
    value.need_milli = seen ? job.need_milli : job.predicted.milli;
    value.elapsed_s = elapsed_s;
    value.predicted_s = job.predicted.run_s;
    value.left_s = seen ? running.left_s : std::max(1.0, job.predicted.run_s - worked_s);
    value.left_upper_s =
        seen ? running.left_s * 1.1 : std::max(1.0, job.predicted.run_upper_s - worked_s);
    value.promise_left_s = promise_left_s(job);
    value.takes_checkpoints = true;
    value.unsaved_s = rules_.checkpoint_s;
    return value;
  }

  // One node has all units: hosts do not bound these jobs.
  std::vector<LiveNode> nodes() const {
    LiveNode node(workload_.units, LiveUnit{"unit", {kWholeUnit, 0}, {}});
    for (const auto& [id, running] : running_) node[running.unit].jobs.push_back(as_live(running));
    return {std::move(node)};
  }

  void set_speeds() {
    for (auto& [id, running] : running_) {
      running.speed = speed_with(running.milli, running.job->need_milli);
      for (const auto& [other, neighbour] : running_)
        if (other != id && neighbour.unit == running.unit)
          running.speed *= workload_.retained[running.job->model * kModels + neighbour.job->model];
      running.speed = std::max(running.speed, 1e-4);
    }
  }

  void preempt(uint64_t id) {
    const auto found = running_.find(id);
    if (found == running_.end()) return;
    const auto& running = found->second;
    const double left_s = std::min(running.job->run_s, running.left_s + rules_.checkpoint_s);
    result_.lost_s += left_s - running.left_s;
    ++result_.preemptions;
    queue_.push_front({running.job, left_s, true});
    running_.erase(found);
  }

  void resize(uint64_t id, uint32_t milli) {
    if (const auto found = running_.find(id); found != running_.end()) found->second.milli = milli;
  }

  void adjust() {
    const auto all = nodes();
    for (const auto& unit : all.front()) {
      if (unit.jobs.empty()) continue;
      const auto adjustment = policy_.adjust(unit);
      for (const auto& [id, milli] : adjustment.milli) resize(id, milli);
      for (const uint64_t id : adjustment.preempted) preempt(id);
    }
    set_speeds();
  }

  void start() {
    constexpr size_t kMostLookedAt = 64;
    std::stable_sort(queue_.begin(), queue_.end(), [](const auto& a, const auto& b) {
      return a.job->job_class < b.job->job_class;  // latency-sensitive ones first
    });
    size_t looked_at = 0;
    for (size_t i = 0; i < queue_.size() && looked_at < kMostLookedAt; ++looked_at) {
      const auto waiting = queue_[i];
      const auto start = policy_.place(nodes(), asked(waiting));
      if (!start) {
        ++i;
        continue;
      }
      queue_.erase(queue_.begin() + static_cast<ptrdiff_t>(i));
      for (const auto& [id, milli] : start->shrunk) resize(id, milli);
      const size_t queued = queue_.size();
      for (const uint64_t id : start->preempted) preempt(id);
      i += queue_.size() - queued;  // those stand before it now
      running_[waiting.job->id] = {waiting.job,    start->unit, start->share.milli,
                                   waiting.left_s, now_s_,      1};
      set_speeds();
    }
  }

  WaitingJob asked(const Waiting& waiting) const {
    auto job = as_waiting(waiting);
    if (rules_.users_ask) job.asked.milli = waiting.job->asked_milli;
    return job;
  }

  TimedRun result(double last_arrival_s) {
    result_.makespan_s = now_s_;
    result_.best_effort_mean_s = best_effort_sum_s_ / std::max<uint32_t>(1, best_effort_);
    result_.best_effort_per_h = best_effort_s_ / last_arrival_s;
    result_.used = used_s_ / (last_arrival_s * workload_.units);
    result_.given = given_s_ / (last_arrival_s * workload_.units);
    result_.slowed = slowed_s_ / std::max(1e-9, ran_s_);
    return result_;
  }

  const TimedWorkload& workload_;
  SharePolicy& policy_;
  const TimedRules& rules_;
  double now_s_ = 0;
  std::map<uint64_t, Running> running_;
  std::deque<Waiting> queue_;
  std::map<uint64_t, bool> promised_;
  TimedRun result_;
  double used_s_ = 0, given_s_ = 0, best_effort_s_ = 0, slowed_s_ = 0, ran_s_ = 0;
  double best_effort_sum_s_ = 0;
  uint32_t best_effort_ = 0;
};

}  // namespace

TimedRun simulate_timed(const TimedWorkload& workload, SharePolicy& policy,
                        const TimedRules& rules) {
  return Simulation(workload, policy, rules).run();
}

Result<TimedRun> run_timed(std::string_view policy, uint64_t seed, TimedSettings settings,
                           const TimedRules& given) {
  settings.knows_all = policy == kClairvoyant;
  TimedRules rules = given;
  rules.users_ask = policy == "best-fit";
  const auto workload = generate_timed(seed, settings);
  const auto retained = [&](const std::string& model, const std::string& neighbour) {
    return workload.retained_predicted[std::stoul(model) * kModels + std::stoul(neighbour)];
  };
  auto made = make_share_policy(settings.knows_all ? "share" : policy, retained);
  if (!made) return tl::unexpected(made.error());
  return simulate_timed(workload, **made, rules);
}

}  // namespace tierpilot::sharing
