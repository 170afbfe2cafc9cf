#include "policies/sim/attempts.h"

#include <algorithm>
#include <utility>

#include "policies/sim/run_time.h"

namespace tierpilot::sim {

Attempts::Attempts(const ClusterSpec& cluster, const Workload& workload, const QueuePlaces& places,
                   AttemptTable& table, Gangs& gangs, ReplicaStore& store, ClusterView& view,
                   Engines& engines, EventQueue& events, Outcomes& outcomes)
    : cluster_(cluster),
      workload_(workload),
      places_(places),
      table_(table),
      gangs_(gangs),
      view_(view),
      engines_(engines),
      events_(events),
      outcomes_(outcomes),
      data_(cluster, workload, store, events, *this) {}

void Attempts::begin(int64_t now_ns, uint32_t task, uint32_t node, uint64_t missing_bytes) {
  table_.expect_at(node);
  AttemptState& state = table_[task];
  state.node = node;
  ++state.attempt;
  state.phase = TaskPhase::kAssigned;
  state.decided_ns = now_ns;
  state.missing_bytes = missing_bytes;
  state.running = state.rewarded = false;
  if (workload_.tasks[task].use_count > 0) data_.ask(task, node);
  state.gpus = view_.assign(node, workload_.tasks[task], missing_bytes);
  table_.enter(task);
  after_handling(now_ns, EventQueue::Lane::kDispatch, cluster_.coordinator.dispatch_s,
                 EventKind::kReceived, task);
}

void Attempts::after_handling(int64_t now_ns, EventQueue::Lane lane, double seconds, EventKind kind,
                              uint32_t task) {
  const double slower = engines_.handle(now_ns, table_[task].node);
  const int64_t at_ns = after_s(now_ns, seconds * slower);
  if (slower == 1)
    events_.push(lane, at_ns, kind, task, table_.renew(task));
  else  // out of the order of its lane
    events_.push(at_ns, kind, task, table_.renew(task));
}

void Attempts::received(int64_t now_ns, uint32_t task) {
  table_[task].arrival = ++arrivals_;
  if (workload_.tasks[task].use_count > 0) return data_.serve(now_ns, task);
  served(now_ns, task, {.asked_ns = now_ns});
}

void Attempts::served(int64_t now_ns, uint32_t task, const Service& service) {
  AttemptState& state = table_[task];
  view_.nodes().served(state.node, std::exchange(state.missing_bytes, 0), service);
  if (outcomes_.served(now_ns, {task, state.attempt}, service, engines_.group(state.node).tiers,
                       view_.nodes().utilisation()))
    state.rewarded = true;
  state.phase = TaskPhase::kReady;
  engines_.make_ready(state.node, task, {places_.of(task).first, state.arrival},
                      workload_.tasks[task].units);
  launch_ready(now_ns, state.node);
}

void Attempts::unserved(int64_t now_ns, uint32_t task, bool stale) {
  report(now_ns, task, stale ? Verdict::kAgain : Verdict::kTryAgain);
}

double Attempts::transfer(int64_t now_ns, uint32_t node, bool begins) {
  return engines_.transfer(now_ns, node, begins);
}

void Attempts::launch_ready(int64_t now_ns, uint32_t node) {
  uint32_t task = 0;
  while (engines_.start_next(node, task)) launch(now_ns, task);
}

void Attempts::launch(int64_t now_ns, uint32_t task) {
  AttemptState& state = table_[task];
  state.running = true;
  view_.nodes().started(state.node, workload_.tasks[task]);
  engines_.handle(now_ns, state.node);
  const Gang* gang = gangs_.of(task);
  if (!gang) return run(now_ns, task, run_s_of(task));
  state.phase = TaskPhase::kGathering;
  if (gangs_.gathered(task)) run_gang(now_ns, *gang);
}

double Attempts::run_s_of(uint32_t task) const {
  const AttemptState& state = table_[task];
  return run_s(engines_.group(state.node), cluster_.checkpoints,
               workload_.tasks[task].operations - state.done_operations, state.attempt > 1);
}

// Each step of the work ends with the slowest.
void Attempts::run_gang(int64_t now_ns, const Gang& gang) {
  double seconds = 0;
  for_each_rank(&gang, gang.first,
                [&](uint32_t task) { seconds = std::max(seconds, run_s_of(task)); });
  for_each_rank(&gang, gang.first, [&](uint32_t task) { run(now_ns, task, seconds); });
}

void Attempts::run(int64_t now_ns, uint32_t task, double seconds) {
  AttemptState& state = table_[task];
  state.phase = TaskPhase::kRunning;
  state.started_ns = now_ns;
  engines_.run(now_ns, state.node, task, table_.renew(task), seconds, workload_.tasks[task].units);
}

void Attempts::run_ended(int64_t now_ns, uint32_t task) {
  AttemptState& state = table_[task];
  state.ended_ns = now_ns;
  engines_.end(now_ns, state.node, task, workload_.tasks[task].units);
  state.phase = TaskPhase::kSettling;
  table_.renew(task);
  launch_ready(now_ns, state.node);
  if (workload_.tasks[task].use_count > 0) return data_.finish(now_ns, task);
  settled(now_ns, task, true);
}

uint64_t Attempts::runs_ended(const Event& event) {
  const auto& ended = engines_.ended_on_cores(event);
  for (const auto& run : ended) run_ended(event.at_ns, run.task);
  return ended.size();
}

void Attempts::settled(int64_t now_ns, uint32_t task, bool committed) {
  report(now_ns, task, committed ? Verdict::kSucceeded : Verdict::kTryAgain);
}

void Attempts::report(int64_t now_ns, uint32_t task, Verdict verdict) {
  table_[task].phase = TaskPhase::kReported;
  table_[task].verdict = verdict;
  after_handling(now_ns, EventQueue::Lane::kReport, cluster_.coordinator.report_s,
                 EventKind::kReported, task);
}

Verdict Attempts::close(uint32_t task) {
  const AttemptState& state = table_[task];
  if (state.verdict == Verdict::kSucceeded)
    view_.nodes().succeeded(state.node, workload_.tasks[task],
                            static_cast<double>(state.ended_ns - state.started_ns) * 1e-9);
  release(task);
  return state.verdict;
}

void Attempts::cut_off(int64_t now_ns, uint32_t task) {
  AttemptState& state = table_[task];
  if (state.phase == TaskPhase::kReady) engines_.forget_ready(state.node, task);
  if (state.phase == TaskPhase::kGathering)
    engines_.withdraw(state.node, workload_.tasks[task].units);
  if (state.phase == TaskPhase::kRunning) {
    const double ran_s = engines_.ran_s(now_ns, state.node, task, state.started_ns);
    engines_.end(now_ns, state.node, task, workload_.tasks[task].units);
    state.done_operations +=
        kept_operations(engines_.group(state.node), cluster_.checkpoints, ran_s, state.attempt > 1);
  }
  data_.abandon(now_ns, task);
  release(task);
}

void Attempts::release(uint32_t task) {
  AttemptState& state = table_[task];
  view_.release(state.node, workload_.tasks[task],
                {state.gpus, std::exchange(state.missing_bytes, 0), state.running});
  table_.leave(task);
  if (!state.rewarded) outcomes_.abandoned({task, state.attempt});
}

void Attempts::resume(int64_t now_ns, uint32_t node) {
  data_.resume(now_ns, node);
  launch_ready(now_ns, node);
}

}  // namespace tierpilot::sim
