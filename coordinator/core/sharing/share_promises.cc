// Which promises are made: when tasks come, and of those on trial once they have shown their pace.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "coordinator/core/sharing/share_keeper.h"
#include "coordinator/core/sharing/share_waits.h"
#include "policies/sharing/live/trial.h"

namespace tierpilot {
namespace {

std::string refusal(const std::string& who, double promise_s, const std::string& why,
                    double earliest_s, bool may_be_on_trial) {
  return fmt::format(
      "task {}: a promise of {} s cannot be made: {}{}{}", who, promise_s, why,
      earliest_s > 0 ? fmt::format("; ask for {:.0f} s or more, or for no promise", earliest_s + 1)
                     : "",
      may_be_on_trial ? "; or let it be on trial, as it may be kept" : "");
}

}  // namespace

Status ShareKeeper::check_promises(std::vector<TaskSpec>& specs) {
  const bool any = std::any_of(specs.begin(), specs.end(),
                               [](const TaskSpec& spec) { return spec.share.promise_ms > 0; });
  if (!any) return {};
  auto now = units(true);
  close_unsound(now);
  std::vector<sharing::WaitingJob> ahead;
  for (const uint64_t id : waiting_for_shares(state_.tasks)) {
    const auto& task = *state_.tasks.find(id);
    if (!task.spec.share.latency_sensitive) break;  // the others give way
    ahead.push_back(waiting_job(task, now));
  }
  // After a restart: if their nodes do not come back, these wait as well.
  for (const auto& [id, holder] : holders_) {
    const auto* task = state_.tasks.find(id);
    const auto* node = state_.registry.find(holder.node);
    const bool away = node && node->life == NodeLife::kExpected;
    if (task && away && task->spec.share.latency_sensitive)
      ahead.push_back(waiting_job(*task, now));
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].share.wanted) continue;
    const auto who =
        specs[i].name.empty() ? fmt::format("#{}", i + 1) : fmt::format("'{}'", specs[i].name);
    if (auto kept = check_promise(specs[i], who, now, ahead); !kept) return kept;
  }
  return {};
}

Status ShareKeeper::check_promise(TaskSpec& spec, const std::string& who, const Units& now,
                                  std::vector<sharing::WaitingJob>& ahead) {
  const double promise_s = spec.share.promise_ms > 0
                               ? static_cast<double>(spec.share.promise_ms) / 1e3
                               : sharing::kNoPromise;
  auto job = waiting_job(0, spec, promise_s, now);
  const auto admission = policy_->admit(now.live, ahead, job);
  if (!admission.admitted) {
    auto hoped = sharing::hoped(job);
    // Without a unit nothing speaks against a trial, which begins on one.
    const bool may_be_kept =
        job.predicted.empty() || policy_->admit(now.live, ahead, hoped).admitted;
    if (!may_be_kept || !spec.share.promise_on_trial)
      return fail(ErrorCode::kExhausted,
                  refusal(who, promise_s,
                          job.predicted.empty()
                              ? fmt::format("it needs {}; ask again once that is different",
                                            missing_units(spec))
                              : admission.reason,
                          admission.earliest_s, may_be_kept));
    job = std::move(hoped);
  } else if (spec.swap_room_bytes > 0) {
    job = sharing::hoped(job);  // it may wait for room, which no unit tells
  } else {
    spec.share.promise_on_trial = false;
  }
  ahead.push_back(std::move(job));
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
        end_trial(task, TrialEnd::kMade);
        each = trial.job;  // for the others, as it is and no longer as it was hoped to be
        break;
      case sharing::TrialVerdict::kNotMade:
        end_trial(task, TrialEnd::kNotMade);
        break;
    }
  }
}

void ShareKeeper::end_trial(Task& task, TrialEnd end) {
  spdlog::info("task {}: its promise, which was on trial, is {}", task.id,
               end == TrialEnd::kMade ? "made" : "not made");
  task.share->trial_end = end;
  lifecycle_.writes().write({task.id}, {}, [self = std::weak_ptr(self_), id = task.id](Status put) {
    const auto alive = self.lock();
    auto* undecided = put || !alive ? nullptr : (*alive)->state_.tasks.find(id);
    if (undecided && undecided->share) undecided->share->trial_end = TrialEnd::kNone;
  });
}

}  // namespace tierpilot
