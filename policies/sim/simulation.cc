#include "policies/sim/simulation.h"

#include <algorithm>
#include <cmath>

#include "policies/scheduling/attempts.h"

namespace tierpilot::sim {
namespace {

// A smaller cluster is in the caches anyway.
constexpr uint32_t kLeastToLookAhead = 256;
constexpr uint64_t kEventsPerProgress = 1 << 16;

}  // namespace

Simulation::Simulation(const ClusterSpec& cluster, const Workload& workload, Policy& policy,
                       const RunOptions& options)
    : cluster_(cluster),
      workload_(workload),
      policy_(policy),
      options_(options),
      holds_(policy.holds() && cluster.coordinator.hold_tasks),
      looks_ahead_(options.look_ahead.value_or(cluster.node_count() >= kLeastToLookAhead)),
      store_(cluster, workload),
      data_(cluster, workload, store_, events_, *this),
      view_(cluster, workload, store_, holds_),
      engines_(cluster, events_),
      failures_(cluster, options.seed, events_),
      queue_(workload.tasks.size()),
      recorder_(workload),
      states_(workload.tasks.size()),
      held_(cluster.node_count()),
      writer_(workload.datasets.size(), kNone) {
  least_launch_s_ = cluster.groups.empty() ? 0 : cluster.groups.front().launch_s;
  for (const NodeGroup& group : cluster.groups) {
    fastest_operations_per_s_ = std::max(fastest_operations_per_s_, group.operations_per_s);
    fastest_read_bytes_per_s_ =
        std::max(fastest_read_bytes_per_s_, group.tiers.fast_read_bytes_per_s);
    least_launch_s_ = std::min(least_launch_s_, group.launch_s);
  }
}

Result<RunResult> Simulation::run() {
  if (!workload_.tasks.empty() &&
      static_cast<double>(workload_.tasks.back().arrival_ns) >= kLastArrivalNs)
    return fail(ErrorCode::kInvalid,
                "the last task arrives after the end of virtual time (126 years): raise the rate "
                "of arrivals, or take a part of the trace");
  if (auto status = store_.place_homes(); !status) return tl::unexpected(status.error());
  const int64_t accept_ns = after_s(0, cluster_.coordinator.accept_s);
  const size_t tasks = workload_.tasks.size();
  size_t arrived = 0;
  uint64_t& count = recorder_.counts.events;
  while (ended_ < tasks && failed_) {
    const int64_t arrival_ns =
        arrived < tasks ? workload_.tasks[arrived].arrival_ns + accept_ns : INT64_MAX;
    const int64_t event_ns = events_.next_ns();
    now_ns_ = std::min(arrival_ns, event_ns);
    if (now_ns_ == INT64_MAX) break;
    recorder_.passed(now_ns_, head_.size() + queue_.size(), engines_.busy_units(),
                     view_.total_units());
    if (arrival_ns <= event_ns) {
      ++count;
      if (looks_ahead_) expect_arrivals(arrived);
      arrive(static_cast<uint32_t>(arrived++));
    } else {
      const Event event = events_.pop();
      if (looks_ahead_) look_ahead(event);
      handle(event);
    }
    pump();
    if (options_.progress && count % kEventsPerProgress == 0 &&
        !options_.progress(static_cast<double>(ended_) / static_cast<double>(tasks)))
      return fail(ErrorCode::kTimeout, "the simulation was stopped");
  }
  if (!failed_) return tl::unexpected(failed_.error());
  auto result = recorder_.result();
  result.unfinished = tasks - ended_;
  return result;
}

void Simulation::arrive(uint32_t task) {
  if (!view_.can_ever_take(workload_.tasks[task])) {
    ++recorder_.counts.rejected;
    return end(task);
  }
  states_[task].phase = Phase::kQueued;
  enqueue(task);
}

void Simulation::handle(const Event& event) {
  uint64_t& count = recorder_.counts.events;
  const auto kind = static_cast<EventKind>(event.kind);
  const auto valid = [&] { return states_[event.subject].generation == event.generation; };
  switch (kind) {
    case EventKind::kFlow:
      count += data_.flow_event(event);
      return;
    case EventKind::kCores:
      for (const auto& ended : engines_.ended_on_cores(event)) ++count, run_ended(ended.task);
      return;
    case EventKind::kReceived:
      if (valid()) ++count, received(event.subject);
      return;
    case EventKind::kRunEnd:
      if (valid()) ++count, run_ended(event.subject);
      return;
    case EventKind::kReported:
      if (valid()) ++count, reported(event.subject);
      return;
    case EventKind::kLost:
      if (valid()) ++count, queue_again(event.subject, true);
      return;
    case EventKind::kHeldLongest:
      if (valid()) ++count, held_longest(event.subject);
      return;
    case EventKind::kNodeFailed:
      if (failures_.take(event)) ++count, node_failed(event.subject);
      return;
    case EventKind::kNodeRepaired:
      if (failures_.take(event)) ++count, node_repaired(event.subject);
      return;
    case EventKind::kGpuFailed:
    case EventKind::kGpuRepaired:
      if (!failures_.take(event)) return;
      ++count;
      if (kind == EventKind::kGpuFailed)
        return gpu_failed(Failures::node_of(event.subject), Failures::gpu_of(event.subject));
      view_.gpu_failed(Failures::node_of(event.subject), Failures::gpu_of(event.subject), false);
      held_back_.room(Failures::node_of(event.subject));
      work_available_ = true;
      return;
  }
}

void Simulation::place(uint32_t task, const View& view, size_t node) {
  State& state = states_[task];
  state.node = view.nodes[node].slot;  // slots are the nodes' numbers
  prefetch(held_[state.node]);
  head_.erase(next_);
  if (!held_back_.empty()) placed_after_hold(task);
  state.phase = Phase::kAssigned;
  state.decided_ns = now_ns_;
  state.missing_bytes =
      view.task.data_bytes - std::min(view.task.data_bytes, view.nodes[node].held_fast_bytes);
  state.running = state.rewarded = false;
  set_writer(task, kNone, task);
  if (workload_.tasks[task].use_count > 0) data_.ask(task, state.node);
  state.gpus = view_.assign(state.node, workload_.tasks[task], state.missing_bytes);
  held_[state.node].push_back(task);
  after_handling(EventQueue::Lane::kDispatch, cluster_.coordinator.dispatch_s, EventKind::kReceived,
                 task);
}

void Simulation::after_handling(EventQueue::Lane lane, double seconds, EventKind kind,
                                uint32_t task) {
  State& state = states_[task];
  const double slower = engines_.handle(now_ns_, state.node);
  const int64_t at_ns = after_s(now_ns_, seconds * slower);
  if (slower == 1)
    events_.push(lane, at_ns, kind, task, ++state.generation);
  else  // out of the order of its lane
    events_.push(at_ns, kind, task, ++state.generation);
}

void Simulation::received(uint32_t task) {
  states_[task].arrival = ++arrivals_;
  if (workload_.tasks[task].use_count > 0) return data_.serve(now_ns_, task);
  served(task, {.asked_ns = now_ns_});
}

void Simulation::served(uint32_t task, const Service& service) {
  State& state = states_[task];
  const NodeGroup& group = engines_.group(state.node);
  recorder_.served(service);
  view_.served(state.node, std::exchange(state.missing_bytes, 0), service);
  ServiceMeasure measure;
  measure.utilisation = view_.utilisation();
  measure.service_ns = static_cast<double>(std::max<int64_t>(now_ns_ - service.asked_ns, 1));
  const uint64_t bytes = service.hit_bytes + service.promoted_bytes + service.fetched_bytes;
  measure.reference_ns = group.tiers.fast_latency_ns +
                         static_cast<double>(bytes) / group.tiers.fast_read_bytes_per_s * 1e9;
  // A clean copy that is dropped moves no byte: only what was written is paid for.
  measure.evicted_bytes = service.evicted_written_bytes;
  measure.evict_bytes_per_s = group.tiers.evict_bytes_per_s;
  if (const auto reward = compute_reward(measure, options_.reward)) {
    state.rewarded = true;
    recorder_.rewarded(reward->reward);
    if (options_.listener) options_.listener->served({task, state.attempt}, measure, *reward);
  }
  state.phase = Phase::kReady;
  engines_.make_ready(state.node, task, {queue_.place(task).first, state.arrival},
                      workload_.tasks[task].units);
  launch_ready(state.node);
}

double Simulation::transfer(int64_t now_ns, uint32_t node, bool begins) {
  return engines_.transfer(now_ns, node, begins);
}

void Simulation::unserved(uint32_t task, bool stale) {
  states_[task].phase = Phase::kReported;
  report(task, stale ? Verdict::kAgain : Verdict::kTryAgain);
}

void Simulation::launch_ready(uint32_t node) {
  uint32_t task = 0;
  while (engines_.start_next(node, task)) launch(task);
}

void Simulation::launch(uint32_t task) {
  State& state = states_[task];
  state.phase = Phase::kRunning;
  state.running = true;
  state.started_ns = now_ns_;
  view_.started(state.node, workload_.tasks[task]);
  engines_.handle(now_ns_, state.node);
  engines_.run(now_ns_, state.node, task, ++state.generation, run_s(task),
               workload_.tasks[task].units);
}

double Simulation::run_s(uint32_t task) const {
  const State& state = states_[task];
  const NodeGroup& group = engines_.group(state.node);
  const Checkpoints& checkpoints = cluster_.checkpoints;
  const double left = workload_.tasks[task].operations - state.done_operations;
  const double work_s = std::max(0.0, left) / group.operations_per_s;
  double run_s = group.launch_s + work_s;
  if (state.attempt > 1) run_s += checkpoints.restart_s;
  if (checkpoints.interval_s > 0)
    run_s += std::floor(work_s / checkpoints.interval_s) * checkpoints.cost_s;
  return run_s;
}

void Simulation::run_ended(uint32_t task) {
  State& state = states_[task];
  state.ended_ns = now_ns_;
  engines_.end(now_ns_, state.node, task, workload_.tasks[task].units);
  state.phase = Phase::kSettling;
  ++state.generation;
  launch_ready(state.node);
  if (workload_.tasks[task].use_count > 0) return data_.finish(now_ns_, task);
  settled(task, true);
}

void Simulation::settled(uint32_t task, bool committed) {
  states_[task].phase = Phase::kReported;
  report(task, committed ? Verdict::kSucceeded : Verdict::kTryAgain);
}

void Simulation::report(uint32_t task, Verdict verdict) {
  states_[task].verdict = verdict;
  after_handling(EventQueue::Lane::kReport, cluster_.coordinator.report_s, EventKind::kReported,
                 task);
}

void Simulation::reported(uint32_t task) {
  const State& state = states_[task];
  const Verdict verdict = state.verdict;
  if (verdict == Verdict::kSucceeded)
    view_.succeeded(state.node, workload_.tasks[task],
                    static_cast<double>(state.ended_ns - state.started_ns) * 1e-9);
  release(task);
  work_available_ = true;
  if (verdict == Verdict::kSucceeded) return succeed(task);
  queue_again(task, verdict == Verdict::kTryAgain);
}

void Simulation::release(uint32_t task) {
  State& state = states_[task];
  view_.release(state.node, workload_.tasks[task],
                {state.gpus, std::exchange(state.missing_bytes, 0), state.running});
  auto& held = held_[state.node];
  *std::find(held.begin(), held.end(), task) = held.back();
  held.pop_back();
  set_writer(task, task, kNone);
  if (!held_back_.empty()) held_back_.room(state.node);
  if (!state.rewarded && options_.listener) options_.listener->abandoned({task, state.attempt});
}

void Simulation::queue_again(uint32_t task, bool counts) {
  State& state = states_[task];
  first_asked_ns_.erase(task);
  if (counts && !may_try_again(state.attempt, cluster_.coordinator.max_attempts)) {
    ++recorder_.counts.failed;
    return end(task);
  }
  ++recorder_.counts.restarts;
  state.phase = Phase::kQueued;
  enqueue(task);
  work_available_ = true;
}

double Simulation::alone_s(const Task& task) const {
  uint64_t bytes = 0;
  for (const DatasetUse& use : workload_.uses_of(task)) bytes += store_.bytes(use.dataset);
  const CoordinatorSpec& coordinator = cluster_.coordinator;
  const double overhead_s =
      coordinator.accept_s + coordinator.dispatch_s + coordinator.report_s + least_launch_s_;
  // No task takes no time, or a slowdown would be endless.
  return std::max(1e-6, overhead_s + task.operations / fastest_operations_per_s_ +
                            static_cast<double>(bytes) / fastest_read_bytes_per_s_);
}

void Simulation::succeed(uint32_t task) {
  const State& state = states_[task];
  const Task& what = workload_.tasks[task];
  recorder_.finished(what, state.started_ns, now_ns_, alone_s(what));
  const auto seconds = [](int64_t from_ns, int64_t to_ns) {
    return static_cast<double>(to_ns - from_ns) * 1e-9;
  };
  if (options_.listener)
    options_.listener->finished(
        {task, state.attempt},
        {seconds(what.arrival_ns, state.started_ns), seconds(what.arrival_ns, now_ns_),
         seconds(state.decided_ns, now_ns_), seconds(asked_ns(task), now_ns_)});
  first_asked_ns_.erase(task);
  end(task);
}

void Simulation::end(uint32_t task) {
  states_[task].phase = Phase::kEnded;
  ++states_[task].generation;
  ++ended_;
}

}  // namespace tierpilot::sim
