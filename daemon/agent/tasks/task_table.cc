#include "daemon/agent/tasks/task_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "daemon/agent/tasks/whose_fault.h"

namespace tierpilot::agent {
namespace {

// Parts of units were dealt out by the coordinator: who has one waits for nobody.
Attempt* next_ready(const std::map<Attempt::ReadyPlace, AttemptId>& ready, Attempts& attempts) {
  for (const auto& [place, attempt] : ready)
    if (Attempt* entry = attempts.find(attempt); entry->assignment.part) return entry;
  return attempts.find(ready.begin()->second);
}

}  // namespace

TaskTable::TaskTable(NodeLimits limits, DataPlane& data, TaskRunner& runner, const Clock& clock,
                     Report report)
    : limits_(std::move(limits)),
      data_(data),
      runner_(runner),
      clock_(clock),
      report_(std::move(report)),
      cpus_(limits_.cpus, limits_.units),
      attempts_([this](uint64_t task) { runner_.forget(task); }),
      shares_(attempts_, cpus_, limits_.shared_units, runner_),
      self_(std::make_shared<TaskTable*>(this)) {}

Status TaskTable::start(Assignment assignment) {
  const AttemptId id = assignment.attempt;
  if (attempts_.find(id)) return {};
  if (const auto* newer = attempts_.newer(id))
    return fail(ErrorCode::kConflict, fmt::format("{}: this node already knows attempt {}",
                                                  label(id), newer->id().attempt));
  if (closed_) return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", label(id), *closed_));
  if (auto status = check_admissible(assignment, limits_, attempts_); !status) return status;

  auto entry = std::make_unique<Attempt>();
  if (auto& rank = assignment.rank; rank && rank->rank == 0 && rank->master_port == 0) {
    auto port = PortHold::any();
    if (!port) return tl::unexpected(port.error());
    rank->master_port = port->port();
    entry->port = std::move(*port);
  }
  entry->assignment = std::move(assignment);
  if (!std::isfinite(entry->assignment.place_s)) entry->assignment.place_s = 0;
  entry->arrival = next_arrival_++;
  entry->received_ns = clock_.boot_ns();
  Attempt& placed = attempts_.add(std::move(entry));
  if (Attempt* older = attempts_.unended_older(id))
    cancel(older->id(), "a newer attempt was started");
  if (!attempts_.unended_older(id) && placed.stage == Stage::kBlocked) begin_staging(placed);
  return {};
}

void TaskTable::begin_staging(Attempt& entry) {
  entry.stage = Stage::kStaging;
  if (entry.assignment.datasets.empty()) return staged(entry, Served{});
  data_.serve(entry.id(), entry.assignment.datasets,
              [weak = std::weak_ptr(self_), id = entry.id()](Result<Served> data) {
                const auto self = weak.lock();
                if (Attempt* entry = self ? (*self)->attempts_.find(id) : nullptr)
                  (*self)->staged(*entry, std::move(data));
              });
}

void TaskTable::staged(Attempt& entry, Result<Served> data) {
  if (entry.stage != Stage::kStaging) return;
  if (!data) {
    return end(entry, entry.doom ? *entry.doom : data_failure(data.error()));
  }
  if (entry.doom) return let_go(entry, *entry.doom);
  ServedData served;
  served.latency_ns = static_cast<uint64_t>(clock_.boot_ns() - entry.received_ns);
  served.evict_gb_per_s = data_.evict_gb_per_s();
  served.reference_ns =
      data_.reference_ns(data->local_bytes + data->promoted_bytes + data->fetched_bytes);
  served.running_units = cpus_.busy_units();
  entry.datasets = data->items;
  served.pool = std::move(*data);
  entry.stage = Stage::kReady;
  ready_[entry.place()] = entry.id();
  report_(ServedEvent{entry.id(), std::move(served)});
  launch_ready();
}

void TaskTable::launch_ready() {
  while (!ready_.empty() && clock_.boot_ns() < lease_deadline_ns_) {
    Attempt* entry = next_ready(ready_, attempts_);
    // No backfill: a wide task would wait for ever behind narrow ones.
    const auto& rank = entry->assignment.rank;
    auto grant = entry->assignment.part
                     ? CpuAllocator::Grant{{}, shares_.unit_of(*entry).cpus}
                     : cpus_.take(entry->assignment.units,
                                  rank ? rank->place.cpu_units : std::vector<uint32_t>());
    if (!grant) break;
    ready_.erase(entry->place());
    launch(*entry, std::move(*grant));
  }
  shares_.fit();
}

void TaskTable::launch(Attempt& entry, CpuAllocator::Grant grant) {
  entry.stage = Stage::kRunning;
  entry.grant = std::move(grant);
  shares_.begin(entry);
  entry.port.reset();
  const std::string gpu = entry.has_share() ? shares_.unit_of(entry).gpu : "";
  const auto launched =
      runner_.launch(LaunchOrder{entry.assignment, entry.datasets, entry.grant.cpus, gpu});
  if (launched) return;
  cpus_.give_back(entry.grant);
  auto exit = exit_of(TaskEnd::kCouldNotStart, launched.error().message);
  exit.node_fault = is_this_nodes(launched.error());
  let_go(entry, std::move(exit));
}

void TaskTable::started(AttemptId attempt, int32_t pid) {
  Attempt* entry = attempts_.find(attempt);
  if (!entry || entry->stage != Stage::kRunning) return;
  if (std::exchange(cannot_start_, false)) spdlog::info("tasks can be started again");
  entry->pid = pid;
  report_(StartedEvent{attempt, pid, entry->grant.units});
  shares_.started(*entry);
}

void TaskTable::registered() {
  std::vector<AttemptId> over;
  for (const auto& [id, entry] : attempts_.all()) {
    if (entry->stage == Stage::kRunning && entry->pid != 0)
      report_(StartedEvent{id, entry->pid, entry->grant.units});
    if (entry->stage == Stage::kEnded && entry->acknowledged) over.push_back(id);
  }
  for (const auto attempt : over) attempts_.erase(attempt);
}

void TaskTable::exited(AttemptId attempt, ExitReport exit) {
  Attempt* entry = attempts_.find(attempt);
  if (!entry || entry->stage != Stage::kRunning) return;
  cpus_.give_back(entry->grant);
  let_go(*entry, std::move(exit));
  launch_ready();
}

void TaskTable::let_go(Attempt& entry, ExitReport exit) {
  entry.stage = Stage::kCommitting;
  const bool cannot_start = exit.how == TaskEnd::kCouldNotStart && exit.node_fault;
  if (cannot_start && !std::exchange(cannot_start_, true))
    spdlog::warn("tasks cannot be started here; the first is task {}: {}", entry.id().task,
                 exit.reason);
  if (entry.assignment.datasets.empty()) return end(entry, std::move(exit));
  const bool success = exit.success();
  data_.finish(entry.id(), success,
               [weak = std::weak_ptr(self_), id = entry.id(),
                exit = std::move(exit)](Committed written) mutable {
                 const auto self = weak.lock();
                 Attempt* entry = self ? (*self)->attempts_.find(id) : nullptr;
                 if (!entry) return;
                 if (written) {
                   exit.written = std::move(*written);
                 } else if (exit.success()) {
                   exit.how = TaskEnd::kDataFailed;
                   exit.reason = written.error().message;
                   exit.node_fault = is_this_nodes_disk(written.error());
                   exit.no_room_bytes = written.error().no_room_bytes;
                 }
                 (*self)->end(*entry, std::move(exit));
               });
}

// Of Clock::boot_ns(); 0: not known. Of an earlier boot of the machine it is too late, if anything.
static int64_t ended_ns(const ExitReport& exit) {
  const auto& process = exit.process;
  if (!process || !process->started_boot_ns || !process->wall_ms) return 0;
  return *process->started_boot_ns + *process->wall_ms * 1'000'000;
}

void TaskTable::end(Attempt& entry, ExitReport exit) {
  const AttemptId id = entry.id();
  entry.stage = Stage::kEnded;
  entry.ending = next_ending_++;
  // Only what a repeated start is compared with is kept.
  entry.assignment = Assignment{};
  entry.assignment.attempt = id;
  entry.datasets.clear();
  // The daemon may have stood still since. What was written has been taken over now.
  const int64_t now_ns = clock_.boot_ns();
  const int64_t at_ns = exit.written.empty() ? ended_ns(exit) : 0;
  report_(ExitedEvent{id, std::move(exit), at_ns > 0 ? std::min(at_ns, now_ns) : now_ns});
  if (Attempt* newer = attempts_.unblocked_by(id)) begin_staging(*newer);
  if (entry.released) attempts_.erase(id);
  attempts_.forget_surplus(limits_.max_ended);
}

void TaskTable::abandon(Attempt& entry, TaskEnd how, const std::string& reason) {
  switch (entry.stage) {
    case Stage::kBlocked:
      return end(entry, exit_of(how, reason));
    case Stage::kStaging:
      if (entry.doom) return;
      entry.doom = exit_of(how, reason);
      return data_.cancel(entry.id());
    case Stage::kReady:
      ready_.erase(entry.place());
      let_go(entry, exit_of(how, reason));
      return launch_ready();
    case Stage::kRunning:
      return runner_.cancel(entry.id(), reason);
    case Stage::kCommitting:
    case Stage::kEnded:
      return;
  }
}

void TaskTable::cancel(AttemptId attempt, const std::string& reason) {
  if (Attempt* entry = attempts_.find(attempt)) abandon(*entry, TaskEnd::kCancelled, reason);
}

Status TaskTable::pause(AttemptId attempt, bool paused) {
  const Attempt* entry = attempts_.find(attempt);
  if (entry && entry->stage == Stage::kRunning) return runner_.pause(attempt, paused);
  return fail(ErrorCode::kNotFound, label(attempt) + " does not run on this node");
}

void TaskTable::drain(const std::string& reason) {
  closed_ = reason;
  for (const auto attempt : attempts_.held())
    if (Attempt* entry = attempts_.find(attempt); entry && !entry->launched())
      cancel(attempt, reason);
}

void TaskTable::restore(std::vector<std::pair<AttemptId, ExitReport>> ended) {
  for (auto& [attempt, exit] : ended) {
    auto entry = std::make_unique<Attempt>();
    entry->assignment.attempt = attempt;
    entry->stage = Stage::kEnded;
    entry->ending = next_ending_++;
    attempts_.add(std::move(entry));
    const int64_t at_ns = ended_ns(exit);
    report_(ExitedEvent{attempt, std::move(exit), at_ns});
  }
}

void TaskTable::close(const std::string& reason) {
  closed_ = reason;
  for (const auto attempt : attempts_.held()) cancel(attempt, reason);
}

void TaskTable::release(AttemptId attempt) {
  Attempt* entry = attempts_.find(attempt);
  if (!entry) return;
  if (entry->stage == Stage::kEnded) {
    attempts_.erase(attempt);
    return;
  }
  entry->released = true;
  cancel(attempt, "the coordinator has released it");
}

void TaskTable::exit_acknowledged(AttemptId attempt) {
  runner_.acknowledged(attempt);
  if (Attempt* entry = attempts_.find(attempt)) entry->acknowledged = true;
  attempts_.forget_surplus(limits_.max_ended);
}

void TaskTable::lease_granted(int64_t deadline_ns) {
  lease_deadline_ns_ = deadline_ns;
  launch_ready();
}

void TaskTable::lease_ended() {
  lease_deadline_ns_ = 0;
  for (const auto attempt : attempts_.held()) {
    Attempt* entry = attempts_.find(attempt);
    if (entry && !entry->launched())
      abandon(*entry, TaskEnd::kLeaseExpired, "the coordinator could not be reached in time");
  }
}

}  // namespace tierpilot::agent
