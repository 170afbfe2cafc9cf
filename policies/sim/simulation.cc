#include "policies/sim/simulation.h"

#include <algorithm>

#include "policies/scheduling/attempts.h"

namespace tierpilot::sim {
namespace {

// A smaller cluster is in the caches anyway.
constexpr uint32_t kLeastToLookAhead = 256;
constexpr uint64_t kEventsPerProgress = 1 << 16;

std::unique_ptr<gang::Placer> expected_time_placer() {
  return std::move(*gang::make_placer("expected-time", 1));
}

}  // namespace

Simulation::Simulation(const ClusterSpec& cluster, const Workload& workload, Policy& policy,
                       const RunOptions& options)
    : cluster_(cluster),
      workload_(workload),
      options_(options),
      looks_ahead_(options.look_ahead.value_or(cluster.node_count() >= kLeastToLookAhead)),
      store_(cluster, workload),
      view_(cluster, workload, store_, may_hold_tasks(cluster, policy)),
      engines_(cluster, events_),
      failures_(cluster, options.seed, events_),
      outcomes_(cluster, workload, store_, options),
      places_(workload.tasks.size()),
      table_(workload.tasks.size(), cluster.node_count()),
      gangs_(workload),
      own_placer_(options.gang_placer ? nullptr : expected_time_placer()),
      attempts_(cluster, workload, places_, table_, gangs_, store_, view_, engines_, events_,
                outcomes_),
      dispatcher_(cluster, workload, policy, store_, places_, view_, table_, gangs_, attempts_,
                  events_, outcomes_, options.gang_placer ? *options.gang_placer : *own_placer_),
      look_ahead_({workload, events_, table_, attempts_.data(), engines_, view_.nodes(), store_,
                   dispatcher_.writers()}) {}

Result<RunResult> Simulation::run() {
  if (!workload_.tasks.empty() &&
      static_cast<double>(workload_.tasks.back().arrival_ns) >= kLastArrivalNs)
    return fail(ErrorCode::kInvalid,
                "the last task arrives after the end of virtual time (126 years): raise the rate "
                "of arrivals, or take a part of the trace");
  if (auto status = store_.place_homes(); !status) return tl::unexpected(status.error());
  const int64_t accept_ns = after_s(0, cluster_.coordinator.accept_s);
  const size_t tasks = workload_.tasks.size();
  const size_t jobs = workload_.jobs();
  size_t arrived = 0;
  uint64_t count = 0;
  while (outcomes_.ended() < jobs) {
    const int64_t arrival_ns =
        arrived < tasks ? workload_.tasks[arrived].arrival_ns + accept_ns : INT64_MAX;
    const int64_t event_ns = events_.next_ns();
    now_ns_ = std::min(arrival_ns, event_ns);
    if (now_ns_ == INT64_MAX) break;
    outcomes_.passed(now_ns_, dispatcher_.waiting(), engines_.busy_units(),
                     view_.nodes().total_units());
    if (arrival_ns <= event_ns) {
      ++count;
      if (looks_ahead_) look_ahead_.arrivals(arrived);
      arrive(static_cast<uint32_t>(arrived++));
    } else {
      const Event event = events_.pop();
      if (looks_ahead_) look_ahead_.events(event);
      count += handle(event);
    }
    if (dispatcher_.has_work())
      if (auto status = dispatcher_.work(now_ns_); !status) return tl::unexpected(status.error());
    if (options_.progress && count % kEventsPerProgress == 0 &&
        !options_.progress(static_cast<double>(outcomes_.ended()) / static_cast<double>(jobs)))
      return fail(ErrorCode::kTimeout, "the simulation was stopped");
  }
  return outcomes_.result(count);
}

void Simulation::arrive(uint32_t task) {
  if (!gangs_.leads(task)) return;
  if (dispatcher_.can_ever_run(task)) return dispatcher_.enqueue(task);
  for_each_rank(gangs_.of(task), task, [&](uint32_t rank) { table_.end(rank); });
  outcomes_.rejected();
}

inline void Simulation::handle_task(const Event& event) {
  const uint32_t task = event.subject;
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::kReceived:
      return attempts_.received(now_ns_, task);
    case EventKind::kRunEnd:
      return attempts_.run_ended(now_ns_, task);
    case EventKind::kReported:
      return reported(task);
    case EventKind::kLost:
      return queue_again(task, !forgive(task));
    case EventKind::kHeldLongest:
      return dispatcher_.held_longest(task);
    default:
      return;
  }
}

uint64_t Simulation::handle(const Event& event) {
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::kFlow:
      return attempts_.data().flow_event(event) ? 1 : 0;
    case EventKind::kCores:
      return attempts_.runs_ended(event);
    case EventKind::kNodeFailed:
    case EventKind::kNodeRepaired:
    case EventKind::kGpuFailed:
    case EventKind::kGpuRepaired:
      if (!failures_.take(event)) return 0;
      handle_failure(event);
      return 1;
    default:
      if (!table_.is_valid(event)) return 0;
      handle_task(event);
      return 1;
  }
}

void Simulation::reported(uint32_t task) {
  const Verdict verdict = attempts_.close(task);
  dispatcher_.released(task, table_[task].node);
  if (gangs_.of(task)) return rank_reported(task, verdict);
  if (verdict == Verdict::kSucceeded) return succeed(task);
  queue_again(task, verdict == Verdict::kTryAgain);
}

bool Simulation::forgive(uint32_t task) {
  if (table_[task].forgiven >= kMostForgiven) return false;
  ++table_[task].forgiven;
  return true;
}

void Simulation::queue_again(uint32_t task, bool counts) {
  dispatcher_.take_first_asked_ns(task);  // of an attempt that is over
  const uint32_t counted = table_[task].attempt - table_[task].forgiven;
  if (counts && !may_try_again(counted, cluster_.coordinator.max_attempts)) {
    for_each_rank(gangs_.of(task), task, [&](uint32_t rank) { table_.end(rank); });
    return outcomes_.failed();
  }
  outcomes_.restarts();
  dispatcher_.enqueue(task);
  dispatcher_.look_again();
}

void Simulation::succeed(uint32_t task) {
  const AttemptState& state = table_[task];
  const int64_t asked_ns = dispatcher_.take_first_asked_ns(task).value_or(state.decided_ns);
  outcomes_.succeeded(now_ns_, {task, state.attempt},
                      {asked_ns, state.decided_ns, state.started_ns});
  table_.end(task);
}

}  // namespace tierpilot::sim
