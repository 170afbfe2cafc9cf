#include "coordinator/core/sharing/share_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/bytes.h"
#include "base/log.h"
#include "coordinator/core/decisions/assignment.h"
#include "coordinator/core/decisions/handover.h"
#include "coordinator/core/gangs/checkpoint_choice.h"
#include "coordinator/core/set_while.h"
#include "coordinator/core/sharing/share_waits.h"

namespace tierpilot {
namespace {

void begin_record(ShareRecord& record, const Task& task, const ClusterState& state) {
  const double ran_s =
      static_cast<double>(std::max<int64_t>(0, state.clock.wall_ms() - task.started_ms)) / 1e3;
  record.started(boot_s(state) - ran_s, task.share->milli);
}

std::unique_ptr<sharing::SharePolicy> make_policy(const std::string& name,
                                                  const SlowDowns& slow_downs) {
  auto made = sharing::make_share_policy(name, slow_downs.retained());
  if (!made) throw std::invalid_argument(made.error().message);
  return std::move(*made);
}

}  // namespace

ShareKeeper::ShareKeeper(ClusterState& state, Lifecycle& lifecycle, Checkpoints& checkpoints,
                         std::shared_ptr<const sharing::JobPredictor> predictor)
    : state_(state),
      lifecycle_(lifecycle),
      checkpoints_(checkpoints),
      slow_downs_(predictor.get()),
      policy_(make_policy(state.settings.share_policy, slow_downs_)),
      forecasts_(predictor),
      speeds_(predictor ? predictor->float32_ops_per_s() : 0),
      gpu_hosts_(predictor ? predictor->gpu_host_ops_per_s() : 0) {}

void ShareKeeper::begin() {
  restore_learned();
  for (const auto& [id, task] : state_.tasks.all()) {
    const bool has = task.state == TaskState::kAssigned || task.state == TaskState::kRunning;
    if (!task.spec.is_shared() || !has || task.is_copied()) continue;
    auto& holder =
        holders_.try_emplace(id, forecast(task.spec, usual_unit(task.spec))).first->second;
    holder.unit_is_known = false;
    holder.record.taken_up();
    holder.attempt = {id, task.attempt};
    holder.node = task.node;
    if (task.share) put_on({task.node, task.share->unit}, id, holder);
    if (task.state == TaskState::kRunning && task.share) begin_record(holder.record, task, state_);
  }
}

void ShareKeeper::started(const Task& task) {
  const auto found = holders_.find(task.id);
  if (found == holders_.end() || !task.share) return;
  begin_record(found->second.record, task, state_);
  heed_on({found->second.node, task.share->unit});
}

void ShareKeeper::reported(const Task& task, const JobPoint& report) {
  const auto found = holders_.find(task.id);
  const auto* node = state_.registry.find(task.node);
  if (found == holders_.end() || !node || !task.share) return;
  const auto& units = node->facts.shared_units;
  const double cores = task.share->unit < units.size() ? units[task.share->unit].cores : 1;
  auto& share = *state_.tasks.find(task.id)->share;
  auto& record = found->second.record;
  const bool began = record.start_s().has_value();
  record.add(boot_s(state_), report, cores);
  if (!began && record.start_s() && record.saw_all()) forecasts_.began(*record.start_s());
  slow_downs_.reported(task.id, sharer(task, record), report, boot_s(state_));
  remember_slow_downs();
  share.used_milli = found->second.record.mean_milli();
  // After a restart the node knows best what it has.
  if (report.milli_units > 0) share.milli = report.milli_units;
}

void ShareKeeper::ended(const Task& task, bool succeeded) {
  // Also of one that was cancelled before it had a share.
  let_go(task.id);
  const auto found = holders_.find(task.id);
  if (found == holders_.end() || found->second.attempt.attempt != task.attempt) return;
  const auto& record = found->second.record;
  // What goes on from a checkpoint tells nothing of a whole run.
  const bool anew = task.attempt == 1 || checkpoints_.totals(task.id) == nullptr;
  const bool whole = task.share && task.share->preemptions == 0 && anew && record.saw_all();
  if (succeeded && whole && record.has_started() && record.used_milli()) learn_of(task, record);
  const bool made_room = found->second.preemption && found->second.preemption->for_task == 0;
  const auto left = found->second.on;
  take_off_unit(task.id, found->second);
  holders_.erase(found);
  slow_downs_.ended(task.id);
  if (!left) return;
  heed_on(*left);
  if (made_room) adjust_soon(*left);
}

void ShareKeeper::put_on(UnitId unit, uint64_t task, Holder& holder) {
  take_off_unit(task, holder);
  on_unit_[unit].insert(task);
  holder.on = std::move(unit);
}

void ShareKeeper::take_off_unit(uint64_t task, Holder& holder) {
  if (!holder.on) return;
  const auto found = on_unit_.find(*holder.on);
  found->second.erase(task);
  if (found->second.empty()) on_unit_.erase(found);
  holder.on.reset();
}

std::set<uint64_t> ShareKeeper::holders_on(const UnitId& unit) const {
  const auto found = on_unit_.find(unit);
  return found == on_unit_.end() ? std::set<uint64_t>{} : found->second;
}

void ShareKeeper::place(Task& task, const Units& units, const sharing::Start& start,
                        const sharing::WaitingJob& job, int64_t decide_ns) {
  const auto& chosen = *units.nodes[start.node];
  auto looked_at = looks(task, units, job, &start);
  auto& node = *state_.registry.find(chosen.facts.name);
  auto& holder =
      holders_.try_emplace(task.id, forecast(task.spec, features(chosen.facts, start.unit)))
          .first->second;
  const uint32_t preemptions = task.share ? task.share->preemptions : 0;
  auto trial_end = task.share ? task.share->trial_end : TrialEnd::kNone;
  if (is_on_trial(task) && !job.is_promised()) trial_end = TrialEnd::kNotMade;
  state_.tasks.advance(task, TaskState::kAssigned);
  task.attempt = state_.next_attempt(task);
  task.node = node.facts.name;
  task.policy = "sharing/" + state_.settings.share_policy;
  task.reason.clear();
  task.exit.reset();
  const auto& unit = chosen.facts.shared_units[start.unit];
  const auto& predicted = job.predicted.at(units.live[start.node][start.unit].type);
  task.share = UnitShare{.unit = static_cast<uint32_t>(start.unit),
                         .gpu = unit.gpu,
                         .milli = start.share.milli,
                         .memory_bytes = start.share.memory_bytes,
                         .preemptions = preemptions,
                         .predicted_by = holder.record.forecast().by,
                         .predicted_milli = predicted.milli,
                         .predicted_s = predicted.run_s,
                         .trial_end = trial_end};
  holder.attempt = {task.id, task.attempt};
  holder.node = task.node;
  put_on({task.node, start.unit}, task.id, holder);
  let_go(task.id);
  state_.registry.assign(node, holder.attempt, task.spec.own_units(), task.spec.swap_room_bytes);
  node.count(task, 0, 0);
  state_.catalog.lock_writes(task);

  DecisionRecord record;
  record.attempt = holder.attempt;
  record.policy = task.policy;
  record.node = task.node;
  record.reason = fmt::format(
      "{} thousandths of {}: {}; by {} it uses {}{}", start.share.milli,
      unit.gpu.empty() ? fmt::format("unit {}", start.unit) : unit.gpu, start.reason,
      holder.record.forecast().by, predicted.milli,
      predicted.run_s > 0
          ? fmt::format(" for {:.0f} s (at most {:.0f})", predicted.run_s, predicted.run_upper_s)
          : "");
  record.considered = looked_at.looked_at;
  record.eligible = looked_at.eligible;
  record.unit_looks = std::move(looked_at.units);
  record.at_ms = state_.clock.wall_ms();
  record.decide_ns = decide_ns;
  auto assignment = std::make_shared<Assignment>(
      make_assignment(state_, task, task.node, newest_checkpoint(state_, task.id)));
  assignment->share = task.share;
  auto stored = std::make_shared<const std::pair<Task, DecisionRecord>>(task, std::move(record));
  hand_over_once_written(state_, lifecycle_, std::move(assignment), stored, [this] { pump(); });
}

}  // namespace tierpilot
