// Which promises are made: when tasks come, and of those on trial once they have shown their pace.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "coordinator/core/sharing/share_keeper.h"
#include "coordinator/core/sharing/share_waits.h"
#include "policies/sharing/live/trial.h"

namespace tierpilot {
namespace {

// All of them are planned for each submission with promises.
constexpr size_t kMostAhead = 128;

// What can be had instead: as a promise, and on trial; 0: nobody knows.
struct Offer {
  double earliest_s = 0;
  bool may_be_on_trial = false;  // as it was asked for
  double on_trial_s = 0;
};

std::string refusal(const std::string& who, double promise_s, const std::string& why,
                    const Offer& offer) {
  auto words = fmt::format("task {}: a promise of {} s cannot be made: {}", who, promise_s, why);
  if (offer.earliest_s > 0)
    words += fmt::format("; ask for {:.0f} s or more, or for no promise", offer.earliest_s + 1);
  if (offer.may_be_on_trial)
    words += "; or let it be on trial, as it may be kept";
  else if (offer.on_trial_s > 0 && (offer.earliest_s == 0 || offer.on_trial_s < offer.earliest_s))
    words += fmt::format("; on trial it may be {:.0f} s or more", offer.on_trial_s + 1);
  return words;
}

// That run within its time limit it may not; empty: it may.
std::string beyond_limit(const TaskSpec& spec, const sharing::WaitingJob& job) {
  double least_s = sharing::kNoPromise;
  for (const auto& [type, predicted] : job.predicted)
    least_s = std::min(least_s, predicted.run_upper_s);
  const double limit_s = static_cast<double>(spec.time_limit_ms) / 1e3;
  if (spec.time_limit_ms <= 0 || job.predicted.empty() || least_s <= limit_s) return {};
  return fmt::format("it may run for {:.3g} s, and its time limit is {:.3g}", least_s, limit_s);
}

}  // namespace

Status ShareKeeper::check_promises(std::vector<TaskSpec>& specs, const SpecList& coming) {
  // The others go after them.
  std::vector<size_t> asking;
  for (size_t i = 0; i < specs.size(); ++i)
    if (specs[i].share.promise_ms > 0) asking.push_back(i);
  if (asking.empty()) return {};
  auto now = units(true);
  close_unsound(now);
  auto ahead = promised_before(now);
  for (const auto* spec : coming)
    if (spec->share.promise_ms > 0 && ahead.size() <= kMostAhead)
      ahead.push_back(job_of(*spec, now, spec->share.promise_on_trial));
  if (asking.size() > kMostAhead || ahead.size() > kMostAhead)
    return fail(ErrorCode::kExhausted,
                fmt::format("{} tasks with promises come while {} wait: more than {} of either are "
                            "too many; submit later, fewer at once, or without promises",
                            asking.size(),
                            ahead.size() > kMostAhead ? fmt::format("more than {}", kMostAhead)
                                                      : std::to_string(ahead.size()),
                            kMostAhead));
  std::vector<sharing::WaitingJob> jobs;
  for (const size_t i : asking) jobs.push_back(job_of(specs[i], now, false));
  const auto promises = policy_->promises(now.live, ahead, jobs);
  for (size_t j = 0; j < jobs.size(); ++j) {
    auto& spec = specs[asking[j]];
    const auto who =
        spec.name.empty() ? fmt::format("#{}", asking[j] + 1) : fmt::format("'{}'", spec.name);
    if (auto kept = check_promise(spec, who, std::move(jobs[j]), *promises); !kept) return kept;
  }
  return {};
}

// Who waits and goes first.
std::vector<sharing::WaitingJob> ShareKeeper::promised_before(const Units& now) const {
  std::vector<sharing::WaitingJob> ahead;
  for (const uint64_t id : waiting_for_shares(state_)) {
    const auto& task = *state_.tasks.find(id);
    if (!task.spec.share.latency_sensitive || ahead.size() > kMostAhead) break;
    if (!has_promise_to_keep(state_, task) && !has_kept_unit(id)) continue;
    // Who can run on no unit that is there takes none from anybody.
    if (auto job = waiting_job(task, now); !job.predicted.empty()) ahead.push_back(std::move(job));
  }
  // After a restart, or a lost connection: if their nodes do not come back, these wait as well.
  for (const auto& [id, holder] : holders_) {
    const auto* task = state_.tasks.find(id);
    const auto* node = state_.registry.find(holder.node);
    const bool away = node && node->life != NodeLife::kLost && !node->can_be_asked();
    if (task && away && task->spec.share.latency_sensitive)
      ahead.push_back(waiting_job(*task, now));
  }
  return ahead;
}

sharing::WaitingJob ShareKeeper::job_of(const TaskSpec& spec, const Units& now,
                                        bool on_trial) const {
  auto job =
      waiting_job(0, spec,
                  spec.share.promise_ms > 0 ? static_cast<double>(spec.share.promise_ms) / 1e3
                                            : sharing::kNoPromise,
                  now);
  return on_trial ? sharing::hoped(std::move(job)) : job;
}

// What no unit tells of when it can begin; empty: it is up to the units.
std::string ShareKeeper::waits_for(const TaskSpec& spec) const {
  if (!spec.after.empty()) return "it begins after other tasks, and nobody knows when they end";
  for (const auto& use : spec.datasets) {
    const auto* entry = use.write ? state_.catalog.find(use.dataset) : nullptr;
    if (!entry) continue;
    for (const uint64_t user : entry->users) {
      const auto* other = state_.tasks.find(user);
      const bool writes = other && std::any_of(other->spec.datasets.begin(),
                                               other->spec.datasets.end(), [&](const auto& its) {
                                                 return its.write && its.dataset == use.dataset;
                                               });
      if (writes)
        return fmt::format("task {} writes dataset '{}' before it, and nobody knows when that ends",
                           user, use.dataset);
    }
  }
  Task task;
  task.spec = spec;
  if (const auto blocked = state_.catalog.blocked_by(task); !blocked.empty())
    return "it is " + blocked;
  if (spec.swap_room_bytes > 0) return "it may wait for room for swapping";
  return {};
}

Status ShareKeeper::check_promise(TaskSpec& spec, const std::string& who, sharing::WaitingJob job,
                                  sharing::Promises& promises) {
  const double promise_s = job.promise_left_s;
  auto hoped = sharing::hoped(job);
  auto asked = promises.ask(job);
  if (asked.admitted) {
    if (const auto waits = waits_for(spec); !waits.empty()) asked = {false, 0, waits};
    if (const auto beyond = beyond_limit(spec, job); !beyond.empty()) asked = {false, 0, beyond};
  }
  if (!asked.admitted) {
    // Without a unit nothing speaks against a trial, which begins on one.
    const bool anywhere = !job.predicted.empty();
    const bool in_time = beyond_limit(spec, hoped).empty();
    const auto on_trial = anywhere && in_time
                              ? promises.ask(hoped)
                              : sharing::Admission{.admitted = in_time, .reason = {}};
    if (!on_trial.admitted || !spec.share.promise_on_trial)
      return fail(ErrorCode::kExhausted,
                  refusal(who, promise_s,
                          anywhere ? asked.reason
                                   : fmt::format("it needs {}; ask again once that is different",
                                                 missing_units(state_, spec)),
                          {asked.earliest_s, on_trial.admitted, on_trial.earliest_s}));
    job = std::move(hoped);
  } else {
    spec.share.promise_on_trial = false;
  }
  promises.add(job);
  return {};
}

void ShareKeeper::review_trials(sharing::LiveUnit unit) {
  for (auto& each : unit.jobs) {
    auto& task = *state_.tasks.find(each.id);
    const auto& holder = holders_.at(each.id);
    const auto& record = holder.record;
    if (!is_on_trial(task) || !record.has_started()) continue;
    const sharing::OnTrial trial{
        .job = known_job(task, holder),
        .start_s = record.start_s().value_or(record.forecast().predicted.start_s),
        .shows_pace = record.counts_iterations()};
    switch (sharing::review(*policy_, unit, trial)) {
      case sharing::TrialVerdict::kGoesOn:
        break;
      case sharing::TrialVerdict::kMade:
        end_trials({task.id}, TrialEnd::kMade);
        each = trial.job;  // for the others, as it is and no longer as it was hoped to be
        break;
      case sharing::TrialVerdict::kNotMade:
        end_trials({task.id}, TrialEnd::kNotMade);
        break;
    }
  }
}

void ShareKeeper::end_trials_of_waiting() {
  if (!state_.store.trouble().empty()) return;
  std::vector<uint64_t> late;
  for (const auto& place : state_.tasks.shared_queue())
    if (waited_too_long(*state_.tasks.find(place.second), state_.clock.wall_ms()))
      late.push_back(place.second);
  if (!late.empty()) end_trials(late, TrialEnd::kNotMade);
}

void ShareKeeper::end_trials(const std::vector<uint64_t>& tasks, TrialEnd end) {
  for (const uint64_t id : tasks) {
    spdlog::info("task {}: its promise, which was on trial, is {}", id,
                 end == TrialEnd::kMade ? "made" : "not made");
    auto& share = state_.tasks.find(id)->share;
    if (!share) share.emplace();
    share->trial_end = end;
  }
  lifecycle_.writes().write(tasks, {}, [self = std::weak_ptr(self_), tasks](Status put) {
    const auto alive = self.lock();
    if (put || !alive) return;
    for (const uint64_t id : tasks)
      if (auto* undecided = (*alive)->state_.tasks.find(id); undecided && undecided->share)
        undecided->share->trial_end = TrialEnd::kNone;
  });
}

}  // namespace tierpilot
