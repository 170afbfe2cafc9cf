// Who of those that wait for shares starts now. In a large cluster many wait for many units: a look
// at the queue is bounded, and so is the part of the loop's time that all looks take.
#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "coordinator/core/set_while.h"
#include "coordinator/core/sharing/refused_alike.h"
#include "coordinator/core/sharing/share_keeper.h"
#include "coordinator/core/sharing/share_waits.h"

namespace tierpilot {
namespace {

constexpr size_t kMostLookedAtClosely = 256;  // of those that wait for units of an engine
constexpr size_t kMostPlans = 1024;  // in a large cluster one takes up to half a millisecond
constexpr int64_t kLongestLook_ns = 50'000'000;
constexpr int64_t kShortLook_ns = 2'000'000;  // after which nothing rests
constexpr int64_t kRestPerLook = 3;           // so long a rest as so many looks

std::string listed(const std::vector<uint64_t>& tasks) {
  std::string text;
  for (const uint64_t task : tasks) text += fmt::format("{}{}", text.empty() ? "" : ", ", task);
  return text;
}

}  // namespace

void ShareKeeper::pump() {
  if (pumping_ || !state_.may_place() || !state_.store.trouble().empty()) return;
  if (state_.tasks.shared_queue().empty()) return;
  const int64_t began_ns = state_.clock.boot_ns();
  if (began_ns < queue_rests_until_ns_) return;  // a tick looks again
  const SetWhile pumping(pumping_);
  auto now = units(true);
  close_unsound(now);
  look_through_queue(now);
  const int64_t ended_ns = state_.clock.boot_ns();
  if (ended_ns - began_ns > kShortLook_ns)
    queue_rests_until_ns_ = ended_ns + kRestPerLook * (ended_ns - began_ns);
}

// Best-effort tasks take turns at being the first, where a look does not come to all of them.
std::vector<uint64_t> ShareKeeper::queue_to_look_at() const {
  auto ids = waiting_for_shares(state_);
  const auto best_effort = std::find_if(ids.begin(), ids.end(), [&](uint64_t id) {
    return !state_.tasks.find(id)->spec.share.latency_sensitive;
  });
  const auto next = std::find(best_effort, ids.end(), go_on_with_);
  if (next != ids.end()) std::rotate(best_effort, next, ids.end());
  return ids;
}

// To whom a promise was made that may be kept.
std::vector<sharing::WaitingJob> ShareKeeper::promised_among(const std::vector<uint64_t>& tasks,
                                                             const Units& now) const {
  std::vector<sharing::WaitingJob> promised;
  for (const uint64_t id : tasks) {
    const auto& task = *state_.tasks.find(id);
    if (promised.size() == sharing::WaitingPromises::kMost || !has_promise_to_keep(state_, task))
      break;  // they come first
    if (is_on_trial(task)) continue;
    if (auto job = waiting_job(task, now); !job.predicted.empty())
      promised.push_back(std::move(job));
  }
  return promised;
}

void ShareKeeper::look_through_queue(Units& now) {
  constexpr const char* kBeyond = "waiting for others that are looked at before it: they are many";
  const int64_t until_ns = state_.clock.boot_ns() + kLongestLook_ns;
  std::map<Engine, size_t> looked_at;
  RefusedAlike refused([this](const TaskSpec& spec) {
    return forecasts_.knows(spec) || slow_downs_.knows(spec.name);
  });
  const auto queue = queue_to_look_at();
  sharing::WaitingPromises promises(*policy_, promised_among(queue, now), kMostPlans);
  uint64_t go_on_with = 0;
  for (const uint64_t id : queue) {
    auto* task = state_.tasks.find(id);
    if (!task) continue;
    auto why = stands_back(*task, now);
    const bool in_time = state_.clock.boot_ns() < until_ns;
    if (why.empty() && !has_kept_unit(id) && in_time)
      if (const auto* alike = refused.why(*task)) why = *alike;
    const bool goes_on = in_time || task->spec.share.latency_sensitive;
    if (why.empty() && goes_on && ++looked_at[task->spec.share.engine] <= kMostLookedAtClosely) {
      const size_t kept = kept_for_.size();
      look_at(*task, now, promises);
      if (kept_for_.size() < kept) refused.clear();
      if (task->state == TaskState::kQueued && !has_kept_unit(id)) refused.add(*task, task->reason);
      continue;
    }
    // Nobody keeps a unit while others are not looked at for it.
    if (has_kept_unit(id)) {
      let_go(id);
      refused.clear();
    }
    if (why.empty()) {
      why = kBeyond;
      if (go_on_with == 0 && !task->spec.share.latency_sensitive) go_on_with = id;
    }
    if (task->reason != why) task->reason = std::move(why);
  }
  go_on_with_ = go_on_with;
}

// Why it goes before nobody, whatever is free; empty: it is to be looked at. Many of them may wait.
std::string ShareKeeper::stands_back(const Task& task, const Units& now) const {
  const auto& bound_to = task.spec.node;
  const bool is_there = bound_to.empty() || std::any_of(now.nodes.begin(), now.nodes.end(),
                                                        [&](const NodeRecord* node) {
                                                          return node->facts.name == bound_to;
                                                        });
  if (!is_there) return "waiting for " + missing_units(state_, task.spec);
  return state_.blocked_by(task);
}

void ShareKeeper::look_at(Task& task, Units& now, sharing::WaitingPromises& promises) {
  const auto job = waiting_job(task, now);
  if (job.predicted.empty()) {
    let_go(task.id);
    task.reason = "waiting for " + missing_units(state_, task.spec);
    return;
  }
  const int64_t begin_ns = state_.clock.boot_ns();
  const size_t refusals = promises.refusals();
  const auto start = start_for(task, now, job, promises);
  const int64_t decide_ns = state_.clock.boot_ns() - begin_ns;
  if (!start) {
    task.reason = "waiting for " + (promises.refusals() > refusals
                                        ? "a unit that no promise to another task counts on"
                                        : why_it_waits(task, now, job));
    return;
  }
  const auto& node = *now.nodes[start->node];
  auto& unit = now.live[start->node][start->unit];
  if (!start->preempted.empty()) {
    kept_for_[{node.facts.name, start->unit}] = task.id;
    for (const uint64_t other : start->preempted)
      preempt(other, task.id,
              fmt::format("task {}, which is latency-sensitive, needs its share", task.id));
    task.reason = "waiting for tasks to give up their shares: " + listed(start->preempted);
    promises.changed();
    return;
  }
  promises.started(task.id);
  for (const auto& [other, milli] : start->shrunk) order(other, milli);
  for (auto& running : unit.jobs)
    for (const auto& [other, milli] : start->shrunk)
      if (running.id == other) running.share.milli = milli;
  place(task, now, *start, job, decide_ns);
  unit.jobs.push_back(live_job(task, holders_.at(task.id)));
}

// Nodes have units for it, and none of them so much room left.
bool ShareKeeper::lacks_swap_room(const Task& task, const Units& now,
                                  const sharing::WaitingJob& job) const {
  bool any = false;
  for (size_t n = 0; n < now.nodes.size(); ++n) {
    const bool has_units =
        job.only_node.value_or(n) == n && std::ranges::any_of(now.live[n], [&](const auto& unit) {
          return job.predicted.contains(unit.type);
        });
    if (has_units && now.nodes[n]->has_swap_room(task.spec.swap_room_bytes)) return false;
    any = any || has_units;
  }
  return any;
}

std::string ShareKeeper::why_it_waits(const Task& task, const Units& now,
                                      const sharing::WaitingJob& job) const {
  if (lacks_swap_room(task, now, job))
    return fmt::format("room for swapping: no node with units for it has {} left",
                       format_bytes(task.spec.swap_room_bytes));
  if (all_are_closed(now.live, job)) return "a unit that is neither unhealthy nor drained";
  if (auto memory = too_little_memory(now.live, job); !memory.empty()) return memory;
  if (auto free = too_little_free(now.live, job); !free.empty()) return free;
  return "a share of a unit: none has enough left beside jobs that it would not slow too much, nor "
         "they it";
}

}  // namespace tierpilot
