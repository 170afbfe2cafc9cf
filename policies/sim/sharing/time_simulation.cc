#include "policies/sim/sharing/time_simulation.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <span>

#include "policies/sharing/live/waiting_promises.h"
#include "policies/sim/sharing/pace_learning.h"
#include "policies/sim/sharing/running_jobs.h"
#include "policies/sim/sharing/trials.h"
#include "policies/sim/sharing/unit_looks.h"

namespace tierpilot::sharing {
namespace {

struct Waiting {
  const TimedJob* job = nullptr;
  double left_s = 0;
  double promise_end_s = kNoPromise;
  bool ran = false;           // before it was preempted, long enough to be known
  double thought_left_s = 0;  // then
  bool on_trial = false;
};

class Simulation {
 public:
  Simulation(const TimedWorkload& workload, SharePolicy& policy, const TimedRules& rules,
             const Thought& thought)
      : workload_(workload),
        policy_(policy),
        rules_(rules),
        running_(workload, thought.retained, rules.seen_after_s, rules.checkpoint_s),
        looks_(workload.units, rules.period_s, rules.period_part),
        trials_(policy, rules.pace_noise, derived_seed(workload.seed, "paces of trials")) {
    if (thought.learns)
      paces_.emplace(*thought.learns, rules.period_s, rules.pace_noise,
                     derived_seed(workload.seed, "paces beside others"));
  }

  TimedRun run() {
    if (workload_.jobs.empty()) return {};
    const std::span<const TimedJob> jobs(workload_.jobs);
    size_t next = 0;
    last_arrival_s_ = jobs.back().arrival_s;
    while (next < jobs.size() || !running_.all().empty() || !queue_.empty()) {
      double until_s = looks_.next_s();
      if (next < jobs.size()) until_s = std::min(until_s, jobs[next].arrival_s);
      until_s = std::min(until_s, running_.next_end_s(now_s_));
      if (until_s >= kNoPromise) break;
      // After a quiet time a look is due at once, since long ago.
      advance(std::max(until_s, now_s_));
      bool changed = end_done();
      while (next < jobs.size() && jobs[next].arrival_s <= now_s_) {
        const size_t first = next++;
        while (next < jobs.size() && jobs[next].whole_id() == jobs[first].whole_id()) ++next;
        arrive(jobs.subspan(first, next - first));
        changed = true;
      }
      if (looks_.is_time(now_s_)) changed = adjust() || changed;
      if (changed) start();
      // Who waits starts nowhere, and no promise that others may start after ends any more.
      if (next == jobs.size() && running_.all().empty() && most_urgent_s() >= kNoPromise) break;
    }
    return result();
  }

 private:
  void advance(double until_s) {
    const double counted_s =
        std::max(0.0, std::min(until_s, last_arrival_s_) - std::min(now_s_, last_arrival_s_));
    running_.advance(until_s - now_s_, counted_s, time_);
    now_s_ = until_s;
  }

  bool end_done() {
    std::vector<uint64_t> done;
    for (const auto& [id, running] : running_.all())
      if (running.left_s <= kDone_s) done.push_back(id);
    for (const uint64_t id : done) {
      const Running running = *running_.find(id);
      leave(running);
      if (--parts_left_[running.job->whole_id()] == 0) count_end(running);
    }
    if (!done.empty()) running_.set_speeds();
    return !done.empty();
  }

  void leave(const Running& running) {
    running_.end(running.job->id);
    trials_.ended(running.job->id);
    if (paces_) paces_->ended(running.job->id);
    changed(running.unit);
  }

  void changed(size_t unit) {
    looks_.look_soon(unit);
    if (paces_) paces_->changed(unit, running_, now_s_);
  }

  void count_end(const Running& running) {
    const auto& job = *running.job;
    parts_left_.erase(job.whole_id());
    const double took_s = now_s_ - job.arrival_s;
    const bool was_made = running.promise_end_s < kNoPromise && !trials_.is_open(job.whole_id());
    if (was_made && took_s <= job.promise_s) ++result_.kept;
    trials_.end(job.whole_id());
    if (job.job_class != JobClass::kBestEffort) return;
    best_effort_sum_s_ += took_s;
    ++best_effort_;
  }

  // Of one job: it is promised what all its parts can be.
  void arrive(std::span<const TimedJob> parts) {
    const auto id = parts.front().whole_id();
    const auto count = static_cast<uint32_t>(parts.size());
    parts_left_[id] = count;
    std::vector<Waiting> arrived;
    for (const auto& part : parts)
      arrived.push_back({&part, part.run_s, part.arrival_s + part.promise_s});
    if (parts.front().promise_s < kNoPromise) {
      ++result_.asked;
      if (is_admitted(arrived)) {
        ++result_.made;
      } else {
        for (auto& waiting : arrived) waiting.on_trial = true;
        const bool may_be_kept = rules_.trials && is_admitted(arrived);
        if (may_be_kept) trials_.begin(id, count);
        for (auto& waiting : arrived) {
          waiting.on_trial = may_be_kept;
          if (!may_be_kept) waiting.promise_end_s = kNoPromise;
        }
      }
    }
    queue_.insert(queue_.end(), arrived.begin(), arrived.end());
  }

  // Each of them, after those before it.
  bool is_admitted(const std::vector<Waiting>& parts) {
    std::vector<WaitingJob> ahead;
    for (const auto& other : queue_)
      if (rank(other) == 0) ahead.push_back(as_waiting(other));
    for (const auto& part : parts) {
      const auto job = as_waiting(part);
      if (!policy_.admit(nodes(), ahead, job).admitted) return false;
      ahead.push_back(job);
    }
    return true;
  }

  void review_trials(size_t unit) {
    const auto on_unit = running_.on_unit(unit);
    for (const uint64_t id : on_unit) {
      const auto& running = *running_.find(id);
      if (!running.on_trial) continue;
      const uint64_t job = running.job->whole_id();
      const auto verdict = trials_.look(running, running_, now_s_);
      if (verdict == TrialVerdict::kNotMade) fail_trial(job);
      if (verdict != TrialVerdict::kMade) continue;
      running_.end_trial(id, true);
      if (!trials_.part_keeps(job)) continue;
      ++result_.made;
      ++result_.made_on_trial;
    }
  }

  void fail_trial(uint64_t job) {
    trials_.end(job);
    std::vector<uint64_t> parts;
    for (const auto& [id, running] : running_.all())
      if (running.job->whole_id() == job) parts.push_back(id);
    for (const uint64_t id : parts) running_.end_trial(id, false);
    for (auto& waiting : queue_) {
      if (waiting.job->whole_id() != job) continue;
      waiting.on_trial = false;
      waiting.promise_end_s = kNoPromise;
    }
  }

  WaitingJob as_waiting(const Waiting& waiting) const {
    const auto& job = *waiting.job;
    WaitingJob value;
    value.id = job.id;
    value.job_class = job.job_class;
    Predicted predicted = job.predicted;
    if (waiting.ran) {  // its pace is known
      predicted.milli = job.need_milli;
      predicted.run_s = predicted.run_upper_s = waiting.thought_left_s;
    }
    value.sharer = {.name = model_name(job.model),
                    .on = UnitKind::kGpu,
                    .milli = static_cast<double>(predicted.milli)};
    for (size_t type = 0; type < workload_.types.size(); ++type)
      if ((job.types >> type & 1) != 0) value.predicted[workload_.types[type]] = predicted;
    value.promise_left_s = waiting.promise_end_s - now_s_;
    return waiting.on_trial ? hoped(std::move(value)) : value;
  }

  // One node has all units: hosts do not bound these jobs.
  std::vector<LiveNode> nodes() const {
    const bool promise_waits = this->promise_waits();
    LiveNode node;
    node.reserve(workload_.units);
    for (size_t unit = 0; unit < workload_.units; ++unit)
      node.push_back(running_.as_live(unit, now_s_, promise_waits));
    return {std::move(node)};
  }

  bool promise_waits() const {
    return std::any_of(queue_.begin(), queue_.end(), [&](const Waiting& waiting) {
      return waiting.promise_end_s < kNoPromise && waiting.promise_end_s > now_s_ &&
             !waiting.on_trial;
    });
  }

  void preempt(uint64_t id) {
    const auto* found = running_.find(id);
    if (found == nullptr) return;
    const Running running = *found;
    const double left_s = std::min(running.job->run_s, running.left_s + rules_.checkpoint_s);
    const double lost_s = left_s - running.left_s;
    result_.lost_s += lost_s;
    if (running.job->job_class == JobClass::kBestEffort && now_s_ <= last_arrival_s_)
      time_.best_effort -= lost_s * running.job->need_milli / kWholeUnit;
    ++result_.preemptions;
    const double thought_left_s = running_.thought_left_s(running, now_s_) + lost_s;
    queue_.push_front({running.job, left_s, running.promise_end_s,
                       running_.has_shown(running, now_s_), thought_left_s, running.on_trial});
    leave(running);
  }

  void resize(uint64_t id, uint32_t milli) {
    running_.resize(id, milli);
    if (const auto* found = running_.find(id)) looks_.look_soon(found->unit);
  }

  // Whether who waits has to be looked at again.
  bool adjust() {
    bool changed = false;
    std::vector<size_t> due;
    for (size_t unit = 0; unit < workload_.units; ++unit)
      if (looks_.is_due(unit, now_s_)) due.push_back(unit);
    const bool promise_waits = !due.empty() && this->promise_waits();
    for (const size_t unit : due) {
      looks_.looked(unit, now_s_, running_);
      if (running_.on_unit(unit).empty()) continue;
      if (paces_) paces_->looked(unit, running_, now_s_);
      review_trials(unit);
      const auto adjustment = policy_.adjust(running_.as_live(unit, now_s_, promise_waits));
      changed = changed || !adjustment.milli.empty() || !adjustment.preempted.empty();
      for (const auto& [id, milli] : adjustment.milli) resize(id, milli);
      for (const auto& each : adjustment.preempted) preempt(each.job);
      running_.check(unit);
    }
    running_.set_speeds();
    return looks_.ended(now_s_, most_urgent_s()) || changed;
  }

  // As a coordinator looks through its queue: who has a promise whose time is not over comes first.
  int rank(const Waiting& waiting) const {
    if (waiting.job->job_class == JobClass::kBestEffort) return 2;
    return waiting.promise_end_s < kNoPromise && waiting.promise_end_s > now_s_ ? 0 : 1;
  }

  // The least that is left of a promise to somebody who waits.
  double most_urgent_s() const {
    double least_s = kNoPromise;
    for (const auto& waiting : queue_)
      if (waiting.promise_end_s > now_s_)
        least_s = std::min(least_s, waiting.promise_end_s - now_s_);
    return least_s;
  }

  void start() {
    constexpr size_t kMostLeft = 64;  // of a rank, for the same types of unit: others wait unseen
    std::stable_sort(queue_.begin(), queue_.end(),
                     [this](const auto& a, const auto& b) { return rank(a) < rank(b); });
    std::map<std::pair<int, uint64_t>, size_t> left;
    auto now = nodes();
    const bool promise_waits = this->promise_waits();
    WaitingPromises promises(policy_, promised());
    for (size_t i = 0; i < queue_.size();) {
      auto& left_alike = left[{rank(queue_[i]), queue_[i].job->types}];
      if (left_alike == kMostLeft) {
        ++i;
        continue;
      }
      if (queue_[i].on_trial && is_hopeless(as_waiting(queue_[i])))
        fail_trial(queue_[i].job->whole_id());
      const auto waiting = queue_[i];
      const auto job = asked(waiting);
      const auto start = start_that_keeps(promises, now, job);
      if (!start) {
        ++left_alike;
        ++i;
        continue;
      }
      promises.started(job.id);
      queue_.erase(queue_.begin() + static_cast<ptrdiff_t>(i));
      for (const auto& [id, milli] : start->shrunk) resize(id, milli);
      const size_t queued = queue_.size();
      for (const uint64_t id : start->preempted) preempt(id);
      i += queue_.size() - queued;  // those stand before it now
      running_.start({waiting.job, start->unit, start->share.milli, waiting.left_s, now_s_,
                      waiting.promise_end_s, waiting.ran, waiting.on_trial});
      running_.check(start->unit);
      changed(start->unit);
      running_.set_speeds();
      now.front()[start->unit] = running_.as_live(start->unit, now_s_, promise_waits);
    }
  }

  // To whom a promise was made, in the order of the queue.
  std::vector<WaitingJob> promised() const {
    std::vector<WaitingJob> made;
    for (const auto& waiting : queue_)
      if (rank(waiting) == 0 && !waiting.on_trial) made.push_back(asked(waiting));
    return made;
  }

  std::optional<Start> start_that_keeps(WaitingPromises& promises, std::vector<LiveNode>& now,
                                        const WaitingJob& job) {
    std::vector<size_t> shut;
    while (shut.size() < WaitingPromises::kMostTries) {
      ClosedUnits closed;
      for (const size_t unit : shut) closed.close(now.front()[unit]);
      auto start = policy_.place(now, job);
      closed.open();
      if (!start || !promises.would_break(now, job, *start)) return start;
      shut.push_back(start->unit);
    }
    return std::nullopt;
  }

  WaitingJob asked(const Waiting& waiting) const {
    auto job = as_waiting(waiting);
    if (rules_.users_ask) job.asked.milli = waiting.job->asked_milli;
    return job;
  }

  TimedRun result() {
    const double counted_s = std::max(last_arrival_s_, 1e-9);  // all may come at once
    result_.makespan_s = now_s_;
    result_.not_ended = static_cast<uint32_t>(parts_left_.size());
    result_.best_effort_mean_s = best_effort_sum_s_ / std::max<uint32_t>(1, best_effort_);
    result_.best_effort_units = time_.best_effort / counted_s;
    result_.used = time_.used / (counted_s * workload_.units);
    result_.given = time_.given / (counted_s * workload_.units);
    result_.slowed = time_.slowed / std::max(1e-9, time_.ran);
    return result_;
  }

  const TimedWorkload& workload_;
  SharePolicy& policy_;
  const TimedRules& rules_;
  double now_s_ = 0, last_arrival_s_ = 0;
  RunningJobs running_;
  UnitLooks looks_;
  std::optional<PaceLearning> paces_;
  Trials trials_;
  std::deque<Waiting> queue_;
  std::map<uint64_t, uint32_t> parts_left_;  // of jobs that have come and not ended
  TimedRun result_;
  UnitTime time_;
  double best_effort_sum_s_ = 0;
  uint32_t best_effort_ = 0;
};

}  // namespace

TimedRun simulate_timed(const TimedWorkload& workload, SharePolicy& policy, const TimedRules& rules,
                        const Thought& thought) {
  return Simulation(workload, policy, rules, thought).run();
}

}  // namespace tierpilot::sharing
