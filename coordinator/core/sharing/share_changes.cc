// What running jobs have of their units: looked at every few seconds.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "coordinator/core/gangs/checkpoint_choice.h"
#include "coordinator/core/sharing/share_keeper.h"
#include "coordinator/core/sharing/share_waits.h"

namespace tierpilot {
namespace {

// Of one job; empty: none.
bool is_newer(const std::string& checkpoint, const std::string& than) {
  return parse_checkpoint_name(checkpoint) > parse_checkpoint_name(than);
}

}  // namespace

void ShareKeeper::tick() {
  end_preempted();
  const int64_t now_ns = state_.clock.boot_ns();
  if (now_ns >= next_look_ns_) {
    next_look_ns_ = now_ns + state_.settings.share_period_ms * 1'000'000;
    end_trials_of_waiting();
    adjust();
  }
  pump();
}

void ShareKeeper::adjust() {
  if (holders_.empty()) return;
  for (auto& [id, holder] : holders_)
    if (auto newest = newest_checkpoint(state_, id); newest != holder.checkpoint) {
      // One that went with its node is none that was just saved.
      if (is_newer(newest, holder.checkpoint)) holder.record.saved(boot_s(state_));
      holder.checkpoint = std::move(newest);
    }
  for (const auto& [unit, tasks] : on_unit_) heed_on(unit);
  foretell_restored();
  const bool any_on_trial = std::any_of(holders_.begin(), holders_.end(), [&](const auto& holder) {
    const auto* task = state_.tasks.find(holder.first);
    return task && is_on_trial(*task);
  });
  if (any_on_trial && state_.store.trouble().empty()) {
    const auto before = units(false);
    for (const auto& node : before.live)
      for (const auto& unit : node) review_trials(unit);
  }
  const auto now = units(false);
  for (size_t n = 0; n < now.live.size(); ++n)
    for (size_t u = 0; u < now.live[n].size(); ++u)
      adjust({now.nodes[n]->facts.name, u}, now.live[n][u]);
}

void ShareKeeper::adjust(const UnitId& id, const sharing::LiveUnit& unit) {
  // While somebody makes room there the others keep what they have.
  if (unit.jobs.empty() || kept_for_.contains(id)) return;
  const auto adjustment = policy_->adjust(unit);
  for (const auto& [job, milli] : adjustment.milli) order(job, milli);
  for (const auto& [job, reason] : adjustment.preempted) preempt(job, 0, std::string(reason));
}

void ShareKeeper::adjust_soon(const UnitId& id) {
  const auto now = units(false);
  for (size_t n = 0; n < now.live.size(); ++n)
    if (now.nodes[n]->facts.name == id.first && id.second < now.live[n].size())
      adjust(id, now.live[n][id.second]);
}

// Nodes tell of their units when they join, which is after a restart of the coordinator.
void ShareKeeper::foretell_restored() {
  for (auto& [id, holder] : holders_) {
    const auto* task = state_.tasks.find(id);
    const auto* node = state_.registry.find(holder.node);
    if (holder.unit_is_known || !task || !task->share || !node || !node->can_be_asked()) continue;
    holder.record.foretold(forecast(task->spec, features(node->facts, task->share->unit)));
    holder.unit_is_known = true;
  }
}

void ShareKeeper::heed_on(const UnitId& unit) {
  std::vector<sharing::Neighbour> running;
  for (const uint64_t id : holders_on(unit)) {
    const auto& record = holders_.at(id).record;
    const auto* task = state_.tasks.find(id);
    if (task && record.has_started()) running.push_back({id, sharer(*task, record)});
  }
  if (running.empty()) return;
  for (const auto& [id, kept] : slow_downs_.together(running))
    holders_.at(id).record.beside(boot_s(state_), kept);
  remember_slow_downs();
}

void ShareKeeper::order(uint64_t id, uint32_t milli) {
  const auto found = holders_.find(id);
  const auto* task = state_.tasks.find(id);
  if (found == holders_.end() || !task || task->state != TaskState::kRunning || !task->share ||
      found->second.preemption)
    return;
  auto* node = state_.registry.find(task->node);
  if (!node || !node->link) return;
  auto& holder = found->second;
  if (has_or_awaits(*task, holder) == milli) return;
  holder.ordered = Ordered{milli, node->link};
  node->link->set_share(
      holder.attempt, milli,
      [self = std::weak_ptr(self_), attempt = holder.attempt, milli](const auto& got) {
        if (const auto alive = self.lock()) (*alive)->answered(attempt, milli, got);
      });
}

uint32_t ShareKeeper::has_or_awaits(const Task& task, const Holder& holder) const {
  const auto* node = state_.registry.find(holder.node);
  const bool awaits =
      holder.ordered && node && node->link && holder.ordered->over.lock() == node->link;
  return awaits ? holder.ordered->milli : task.share->milli;
}

void ShareKeeper::answered(AttemptId attempt, uint32_t ordered, const Result<uint32_t>& milli) {
  const auto found = holders_.find(attempt.task);
  auto* task = state_.tasks.find(attempt.task);
  if (found == holders_.end() || found->second.attempt != attempt || !task || !task->share) return;
  auto& awaited = found->second.ordered;
  if (awaited && awaited->milli == ordered) awaited.reset();
  if (!milli) {
    spdlog::debug("task {} keeps its share: {}", attempt.task, milli.error().message);
    return;
  }
  task->share->milli = *milli;
  found->second.record.given(boot_s(state_), *milli);
}

void ShareKeeper::preempt(uint64_t id, uint64_t for_task, const std::string& reason) {
  const auto found = holders_.find(id);
  auto* task = state_.tasks.find(id);
  if (found == holders_.end() || !task || found->second.preemption) return;
  spdlog::info("task {} is to give up its share: {}", id, reason);
  found->second.preemption = Preemption{.since_ns = state_.clock.boot_ns(),
                                        .checkpoint = newest_checkpoint(state_, id),
                                        .reason = reason,
                                        .for_task = for_task};
  if (task->share) ++task->share->preemptions;
  lifecycle_.writes().note(id);
  lifecycle_.writes().write_noted();
  ++preemptions_;
  end_if_saved(id, found->second);
}

bool ShareKeeper::has_kept_unit(uint64_t task) const {
  return std::any_of(kept_for_.begin(), kept_for_.end(),
                     [&](const auto& kept) { return kept.second == task; });
}

void ShareKeeper::let_go(uint64_t task) {
  if (!has_kept_unit(task)) return;
  std::erase_if(kept_for_, [&](const auto& kept) { return kept.second == task; });
  for (auto& [id, holder] : holders_) {
    if (!holder.preemption || holder.preemption->for_task != task || holder.preemption->ordered)
      continue;
    spdlog::info("task {} keeps its share: task {} needs it no more", id, task);
    holder.preemption.reset();
    --preemptions_;
    if (auto* kept = state_.tasks.find(id); kept && kept->share && kept->share->preemptions > 0)
      --kept->share->preemptions;
    lifecycle_.writes().note(id);
  }
  lifecycle_.writes().write_noted();
}

bool ShareKeeper::takes_checkpoints(uint64_t id, const Holder& holder) const {
  return holder.record.may_take_checkpoints() || last_checkpoint(state_, id).has_value();
}

void ShareKeeper::end_preempted() {
  for (auto& [id, holder] : holders_) end_if_saved(id, holder);
}

// Or if it cannot save, or had time enough to.
void ShareKeeper::end_if_saved(uint64_t id, Holder& holder) {
  auto& preemption = holder.preemption;
  if (!preemption) return;
  const auto* task = state_.tasks.find(id);
  const auto* node = state_.registry.find(holder.node);
  if (!task || !node || !node->link) return;
  // What was said over an earlier connection may never have come.
  if (preemption->told.lock() == node->link) return;
  const bool has_saved = is_newer(newest_checkpoint(state_, id), preemption->checkpoint);
  const bool may_save =
      task->state == TaskState::kRunning && takes_checkpoints(id, holder) && !has_saved;
  // It may have heard of nothing.
  if (may_save && preemption->asked.lock() != node->link) {
    checkpoints_.ask(id, preemption->reason);
    preemption->asked = node->link;
    preemption->since_ns = state_.clock.boot_ns();
  }
  const int64_t waited_ns = state_.clock.boot_ns() - preemption->since_ns;
  if (may_save && waited_ns < state_.settings.preemption_grace_ms * 1'000'000) return;
  // Its start may be on its way to the disk still, and its node does not know it then: it is told
  // again until it runs.
  if (task->state == TaskState::kRunning) preemption->told = node->link;
  preemption->ordered = true;
  node->link->cancel(holder.attempt, "preempted: " + preemption->reason);
}

}  // namespace tierpilot
