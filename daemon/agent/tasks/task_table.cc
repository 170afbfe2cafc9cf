#include "daemon/agent/tasks/task_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "daemon/agent/tasks/task_entry.h"
#include "daemon/agent/tasks/task_env.h"
#include "daemon/agent/tasks/whose_fault.h"

namespace tierpilot::agent {
TaskTable::TaskTable(Limits limits, DataPlane& data, TaskRunner& runner, const Clock& clock,
                     Report report)
    : limits_(std::move(limits)),
      data_(data),
      runner_(runner),
      clock_(clock),
      report_(std::move(report)),
      cpus_(limits_.cpus, limits_.units),
      self_(std::make_shared<TaskTable*>(this)) {}

TaskTable::~TaskTable() = default;

template <class Value>
std::function<void(Value)> TaskTable::later(AttemptId attempt,
                                            void (TaskTable::*then)(Entry&, Value)) {
  return [weak = std::weak_ptr(self_), attempt, then](Value value) {
    const auto self = weak.lock();
    if (!self) return;
    if (Entry* entry = (*self)->find(attempt)) ((*self)->*then)(*entry, std::move(value));
  };
}

Status TaskTable::start(Assignment assignment) {
  const AttemptId id = assignment.attempt;
  if (find(id)) return {};
  const auto newer = entries_.upper_bound(id);
  if (newer != entries_.end() && newer->first.task == id.task)
    return fail(ErrorCode::kConflict, fmt::format("{}: this node already knows attempt {}",
                                                  label(id), newer->first.attempt));
  if (auto status = admissible(assignment); !status) return status;

  auto entry = std::make_unique<Entry>();
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
  Entry& placed = *(entries_[id] = std::move(entry));
  if (Entry* older = unended_older(id)) cancel(older->id(), "a newer attempt was started");
  if (!unended_older(id) && placed.stage == Stage::kBlocked) begin_staging(placed);
  return {};
}

Status TaskTable::admissible(const Assignment& assignment) const {
  const auto refuse = [&](ErrorCode code, std::string why) {
    return fail(code, fmt::format("{}: {}", label(assignment.attempt), why));
  };
  if (closed_) return refuse(ErrorCode::kUnavailable, *closed_);
  if (assignment.argv.empty() || assignment.argv.front().empty())
    return refuse(ErrorCode::kInvalid, "the command is empty");
  if (assignment.units == 0) return refuse(ErrorCode::kInvalid, "asks for no compute unit");
  // Of these two the coordinator may know better by now: the configuration has changed.
  if (const auto& part = assignment.part; part && part->unit >= limits_.shared_units.size())
    return refuse(ErrorCode::kExhausted,
                  fmt::format("has a part of shared unit {}, this node has {} of them", part->unit,
                              limits_.shared_units.size()));
  if (!assignment.part && assignment.units > cpus_.units())
    return refuse(ErrorCode::kExhausted, fmt::format("needs {} compute units, this node has {}",
                                                     assignment.units, cpus_.units()));
  if (assignment.memory_limit_bytes > limits_.memory_bytes)
    return refuse(ErrorCode::kExhausted,
                  fmt::format("needs {} bytes of memory, this node offers {}",
                              assignment.memory_limit_bytes, limits_.memory_bytes));
  if (assignment.rank && !assignment.rank->cpu_units.empty()) {
    const auto& among = assignment.rank->cpu_units;
    const auto there = std::count_if(among.begin(), among.end(),
                                     [&](uint32_t unit) { return unit < cpus_.units(); });
    if (static_cast<uint64_t>(there) < assignment.units)
      return refuse(ErrorCode::kExhausted,
                    fmt::format("needs {} of compute units of which this node has {}",
                                assignment.units, there));
  }
  if (auto status = check_dataset_env(assignment.datasets); !status)
    return refuse(status.error().code, status.error().message);
  const auto live = std::count_if(entries_.begin(), entries_.end(), [](const auto& item) {
    return item.second->stage != Stage::kEnded;
  });
  if (static_cast<size_t>(live) >= limits_.max_live)
    return refuse(ErrorCode::kExhausted,
                  fmt::format("this node holds {} attempts already", limits_.max_live));
  return {};
}

void TaskTable::begin_staging(Entry& entry) {
  entry.stage = Stage::kStaging;
  if (entry.assignment.datasets.empty()) return staged(entry, Served{});
  data_.serve(entry.id(), entry.assignment.datasets,
              later<Result<Served>>(entry.id(), &TaskTable::staged));
}

void TaskTable::staged(Entry& entry, Result<Served> data) {
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

// Parts of units were dealt out by the coordinator: who has one waits for nobody.
TaskTable::Entry* TaskTable::next_ready() {
  for (const auto& [place, attempt] : ready_)
    if (Entry* entry = find(attempt); entry->assignment.part) return entry;
  return find(ready_.begin()->second);
}

void TaskTable::launch_ready() {
  while (!ready_.empty() && clock_.boot_ns() < lease_deadline_ns_) {
    Entry* entry = next_ready();
    // No backfill: a wide task would wait for ever behind narrow ones.
    const auto& rank = entry->assignment.rank;
    auto grant =
        entry->assignment.part
            ? CpuAllocator::Grant{{}, limits_.shared_units[entry->assignment.part->unit].cpus}
            : cpus_.take(entry->assignment.units, rank ? rank->cpu_units : std::vector<uint32_t>());
    if (!grant) break;
    ready_.erase(entry->place());
    launch(*entry, std::move(*grant));
  }
  fit_shares();
}

void TaskTable::launch(Entry& entry, CpuAllocator::Grant grant) {
  entry.stage = Stage::kRunning;
  entry.grant = std::move(grant);
  if (entry.assignment.max_units > 0) entry.milli_units = entry.least_milli();
  if (const auto& part = entry.assignment.part) set_part(entry, part->milli);
  entry.port.reset();
  const std::string gpu = entry.has_share() ? shared_unit(entry).gpu : "";
  const auto launched =
      runner_.launch(LaunchOrder{entry.assignment, entry.datasets, entry.grant.cpus, gpu});
  if (launched) return;
  cpus_.give_back(entry.grant);
  auto exit = exit_of(TaskEnd::kCouldNotStart, launched.error().message);
  exit.node_fault = is_this_nodes(launched.error());
  let_go(entry, std::move(exit));
}

void TaskTable::started(AttemptId attempt, int32_t pid) {
  Entry* entry = find(attempt);
  if (!entry || entry->stage != Stage::kRunning) return;
  entry->pid = pid;
  report_(StartedEvent{attempt, pid, entry->grant.units});
  if (entry->is_elastic()) confine(*entry);
  if (entry->has_share()) confine_part(*entry);
}

void TaskTable::registered() {
  std::vector<AttemptId> over;
  for (const auto& [id, entry] : entries_) {
    if (entry->stage == Stage::kRunning && entry->pid != 0)
      report_(StartedEvent{id, entry->pid, entry->grant.units});
    if (entry->stage == Stage::kEnded && entry->acknowledged) over.push_back(id);
  }
  for (const auto attempt : over) erase(attempt);
}

void TaskTable::exited(AttemptId attempt, ExitReport exit) {
  Entry* entry = find(attempt);
  if (!entry || entry->stage != Stage::kRunning) return;
  cpus_.give_back(entry->grant);
  let_go(*entry, std::move(exit));
  launch_ready();
}

void TaskTable::let_go(Entry& entry, ExitReport exit) {
  entry.stage = Stage::kCommitting;
  if (entry.assignment.datasets.empty()) return end(entry, std::move(exit));
  const bool success = exit.success();
  data_.finish(entry.id(), success,
               [weak = std::weak_ptr(self_), id = entry.id(),
                exit = std::move(exit)](Result<std::vector<ReplicaChange>> written) mutable {
                 const auto self = weak.lock();
                 Entry* entry = self ? (*self)->find(id) : nullptr;
                 if (!entry) return;
                 if (written) {
                   exit.written = std::move(*written);
                 } else if (exit.success()) {
                   exit.how = TaskEnd::kDataFailed;
                   exit.reason = written.error().message;
                   exit.node_fault = is_this_nodes_disk(written.error());
                 }
                 (*self)->end(*entry, std::move(exit));
               });
}

void TaskTable::end(Entry& entry, ExitReport exit) {
  const AttemptId id = entry.id();
  entry.stage = Stage::kEnded;
  entry.ending = next_ending_++;
  // Only what a repeated start is compared with is kept.
  entry.assignment = Assignment{};
  entry.assignment.attempt = id;
  entry.datasets.clear();
  report_(ExitedEvent{id, std::move(exit)});
  begin_newer(id);
  if (entry.released) erase(id);
  forget_surplus();
}

void TaskTable::begin_newer(AttemptId ended) {
  for (auto it = entries_.upper_bound(ended); it != entries_.end() && it->first.task == ended.task;
       ++it) {
    Entry& newer = *it->second;
    if (newer.stage == Stage::kBlocked && !unended_older(newer.id())) return begin_staging(newer);
  }
}

void TaskTable::abandon(Entry& entry, TaskEnd how, const std::string& reason) {
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

uint16_t TaskTable::master_port(AttemptId attempt) const {
  const auto found = entries_.find(attempt);
  const bool has = found != entries_.end() && found->second->assignment.rank;
  return has ? found->second->assignment.rank->master_port : 0;
}

void TaskTable::cancel(AttemptId attempt, const std::string& reason) {
  if (Entry* entry = find(attempt)) abandon(*entry, TaskEnd::kCancelled, reason);
}

Status TaskTable::pause(AttemptId attempt, bool paused) {
  const Entry* entry = find(attempt);
  if (entry && entry->stage == Stage::kRunning) return runner_.pause(attempt, paused);
  return fail(ErrorCode::kNotFound, label(attempt) + " does not run on this node");
}

void TaskTable::drain(const std::string& reason) {
  closed_ = reason;
  for (const auto attempt : held())
    if (Entry* entry = find(attempt); entry && !entry->launched()) cancel(attempt, reason);
}

void TaskTable::restore(std::vector<std::pair<AttemptId, ExitReport>> ended) {
  for (auto& [attempt, exit] : ended) {
    auto entry = std::make_unique<Entry>();
    entry->assignment.attempt = attempt;
    entry->stage = Stage::kEnded;
    entry->ending = next_ending_++;
    entries_[attempt] = std::move(entry);
    report_(ExitedEvent{attempt, std::move(exit)});
  }
}

void TaskTable::close(const std::string& reason) {
  closed_ = reason;
  for (const auto attempt : held()) cancel(attempt, reason);
}

void TaskTable::release(AttemptId attempt) {
  Entry* entry = find(attempt);
  if (!entry) return;
  if (entry->stage == Stage::kEnded) {
    erase(attempt);
    return;
  }
  entry->released = true;
  cancel(attempt, "the coordinator has released it");
}

void TaskTable::exit_acknowledged(AttemptId attempt) {
  runner_.acknowledged(attempt);
  if (Entry* entry = find(attempt)) entry->acknowledged = true;
  forget_surplus();
}

void TaskTable::lease_granted(int64_t deadline_ns) {
  lease_deadline_ns_ = deadline_ns;
  launch_ready();
}

void TaskTable::lease_ended() {
  lease_deadline_ns_ = 0;
  for (const auto attempt : held()) {
    Entry* entry = find(attempt);
    if (entry && !entry->launched())
      abandon(*entry, TaskEnd::kLeaseExpired, "the coordinator could not be reached in time");
  }
}

std::vector<AttemptId> TaskTable::live() const {
  std::vector<AttemptId> ids;
  for (const auto& [id, entry] : entries_)
    if (entry->stage != Stage::kEnded || !entry->acknowledged) ids.push_back(id);
  return ids;
}

std::set<AttemptId> TaskTable::held() const {
  std::set<AttemptId> ids;
  for (const auto& [id, entry] : entries_)
    if (entry->stage != Stage::kEnded) ids.insert(id);
  return ids;
}

size_t TaskTable::running_tasks() const {
  return static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), [](const auto& item) {
    return item.second->stage == Stage::kRunning;
  }));
}

bool TaskTable::idle() const {
  return held().empty();
}

void TaskTable::erase(AttemptId attempt) {
  entries_.erase(attempt);
  const auto other = entries_.lower_bound({attempt.task, 0});
  if (other == entries_.end() || other->first.task != attempt.task) runner_.forget(attempt.task);
}

void TaskTable::forget_surplus() {
  std::vector<std::pair<uint64_t, AttemptId>> forgettable;
  if (entries_.size() <= limits_.max_ended) return;
  for (const auto& [id, entry] : entries_)
    if (entry->stage == Stage::kEnded && entry->acknowledged)
      forgettable.emplace_back(entry->ending, id);
  std::sort(forgettable.begin(), forgettable.end());
  const size_t surplus = entries_.size() - limits_.max_ended;
  for (size_t i = 0; i < std::min(surplus, forgettable.size()); ++i) erase(forgettable[i].second);
}

TaskTable::Entry* TaskTable::find(AttemptId attempt) {
  auto found = entries_.find(attempt);
  return found == entries_.end() ? nullptr : found->second.get();
}

TaskTable::Entry* TaskTable::unended_older(AttemptId attempt) {
  for (auto it = entries_.lower_bound({attempt.task, 0});
       it != entries_.end() && it->first < attempt; ++it)
    if (it->second->stage != Stage::kEnded) return it->second.get();
  return nullptr;
}

}  // namespace tierpilot::agent
