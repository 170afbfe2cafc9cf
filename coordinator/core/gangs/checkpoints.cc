#include "coordinator/core/gangs/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "coordinator/core/data/replicator.h"
#include "coordinator/core/gangs/checkpoint_choice.h"
#include "coordinator/store/records.h"
#include "policies/gang/placement/job.h"

namespace tierpilot {
namespace {

constexpr int64_t kLookNs = 1'000'000'000;
// Of a job that are remembered: older checkpoints are gone.
constexpr size_t kMostCosts = 1024;
constexpr uint32_t kCopies = 2;  // where there are as many nodes
// Of a unit, also where none has failed yet: 419 interruptions of 16,384 GPUs in 54 days
// (Grattafiori et al., "The Llama 3 Herd of Models", 2024).
constexpr double kLeastFailuresPerH = 2e-5;

// Who talks for it: of a gang, rank 0.
const Task* speaker_of(const ClusterState& state, uint64_t id) {
  const auto* task = state.tasks.find(id);
  if (!task || !task->spec.is_gang()) return task;
  const auto& ranks = state.tasks.ranks_of(id);
  return ranks.empty() ? nullptr : state.tasks.find(ranks.front());
}

bool runs_on(const ClusterState& state, const Task& task, const std::string& node) {
  if (!task.spec.is_gang()) return task.node.empty() || task.node == node;
  const auto& ranks = state.tasks.ranks_of(task.id);
  return ranks.empty() || std::any_of(ranks.begin(), ranks.end(), [&](uint64_t rank) {
           return state.tasks.find(rank)->node == node;
         });
}

// That is under way on some node.
bool is_of_its_try(const Task& task, const CheckpointName& name) {
  return name.attempt == task.attempt &&
         (task.state == TaskState::kAssigned || task.state == TaskState::kRunning);
}

// Nodes tell of tries that were, and of the one that they run. After the restore of a backup there
// may have been more.
bool may_tell(const ClusterState& state, const Task& task, const CheckpointName& name,
              const std::string& node) {
  if (name.attempt > task.attempt) return state.adopting();
  return !is_of_its_try(task, name) || runs_on(state, task, node);
}

// After a restart all that were there are expected to join.
uint32_t nodes_that_may_keep(const ClusterState& state) {
  const uint32_t up = state.registry.summary().up_count();
  if (state.clock.boot_ns() >= state.joined_by_ns) return up;
  return std::max(up, static_cast<uint32_t>(state.registry.slots().names().size()));
}

Dataset dataset_of(const ClusterState& state, const CheckpointName& name, const std::string& node,
                   const ReplicaState& replica) {
  Dataset made{.name = to_string(name),
               .bytes = replica.bytes,
               .version = replica.version,
               .home = node,
               .origin = fmt::format("task {}, attempt {}, iteration {}", name.task, name.attempt,
                                     name.iteration),
               .request_id = {},
               .digest = replica.digest};
  made.replicas = std::clamp(nodes_that_may_keep(state), 1u, kCopies);
  return made;
}

Figure in_ms(uint64_t ns) {
  return {static_cast<double>(ns) / 1e6, {}};
}

}  // namespace

void Checkpoints::found(const std::string& node, const std::string& dataset,
                        const ReplicaState& replica) {
  const auto name = parse_checkpoint_name(dataset);
  if (!name) return;
  const bool is_kept = replica.in_slow && replica.home && replica.digest.known();
  // What could not be written down yet has gone.
  if (!is_kept && state_.catalog.strays(dataset).empty() && left_.erase(dataset) &&
      publishing_.erase(dataset))
    state_.saving.extract(name->task);
  if (state_.catalog.find(dataset) || state_.catalog.is_being_removed(dataset) ||
      publishing_.contains(dataset))
    return;
  auto* record = state_.registry.find(node);
  const auto drop = [&] {
    if (record && record->link) record->link->drop_dataset(dataset, UINT64_MAX);
  };
  // After a restore there may be jobs that nobody here knows of.
  const bool is_known_job = name->task <= state_.last_task && !state_.adopting();
  if (!is_kept) {
    // What a try has read of one that has gone since.
    const bool is_read = (replica.in_fast || replica.in_slow) && !replica.home;
    if (is_read && is_known_job) drop();
    return;
  }
  const auto* task = state_.tasks.find(name->task);
  if (task && !may_tell(state_, *task, *name, node)) {
    // A copy of one that went before it was made, or while its node was away: it may be needed.
    const bool is_copy = is_of_its_try(*task, *name) && last_checkpoint(state_, task->id) > *name;
    const bool is_needed = is_copy && !(last_safe_checkpoint(state_, task->id) > *name);
    if (is_copy && !is_needed) drop();
    if (!is_needed) return;
  }
  if (task && !is_ended(task->state)) {
    state_.gangs.saved(*name, state_.clock.boot_ns());
    return publish(dataset_of(state_, *name, node, replica), *name);
  }
  // A power cut may undo the end of its job, which would begin from it.
  if (task) {
    left_.insert(dataset);
    return;
  }
  // Its job is over without it.
  if (is_known_job) drop();
}

void Checkpoints::publish(Dataset dataset, const CheckpointName& name) {
  publishing_.insert(dataset.name);
  state_.saving.insert(name.task);
  state_.store.write(
      [dataset](Db& db) -> Status {
        if (auto put = records::put_dataset(db, dataset); !put) return put;
        return records::clear_owed_drops_of(db, dataset.name);
      },
      [this, dataset, name](Status status) {
        if (!status) {
          spdlog::error("{}: {}", dataset.name, status.error().message);
          left_.insert(dataset.name);
          return;
        }
        publishing_.erase(dataset.name);
        state_.saving.extract(name.task);
        // Who has it is as nodes have told since.
        auto& entry = state_.catalog.put(dataset);
        if (state_.tasks.find(name.task)) entry.users.insert(name.task);
      });
}

void Checkpoints::tell(uint64_t task, const JobAdvice& advice) {
  const auto* speaker = speaker_of(state_, task);
  if (!speaker || speaker->state != TaskState::kRunning) return;
  const auto* node = state_.registry.find(speaker->node);
  if (node && node->link && node->facts.takes_checkpoints)
    node->link->tell_job({speaker->id, speaker->attempt}, advice);
}

double Checkpoints::failures_per_h(const Task& task) const {
  const auto& rates = state_.units.rates(state_.clock.wall_ms());
  double sum = 0;
  const auto add = [&](const std::string& unit) {
    const auto rate = rates.find(unit);
    sum += std::max(rate == rates.end() ? 0 : rate->second.mean, kLeastFailuresPerH);
  };
  for (const uint64_t id : state_.tasks.ranks_tried(task)) {
    const auto& rank = *state_.tasks.find(id);
    for (const auto& gpu : rank.rank->gpus) add(gpu_unit_id(rank.node, gpu));
    if (rank.rank->gpus.empty())
      for (const uint32_t unit : rank.rank->cpu_units) add(cpu_unit_id(rank.node, unit));
  }
  // Which units a task of one process is on is not told: they are about alike.
  if (!task.spec.is_gang())
    for (uint32_t unit = 0; unit < task.spec.units; ++unit) add(cpu_unit_id(task.node, unit));
  return sum;
}

void Checkpoints::measured(const std::string& node, AttemptId attempt,
                           const std::string& checkpoint, const CheckpointCost& cost) {
  const auto name = parse_checkpoint_name(checkpoint);
  const auto* task = name ? state_.tasks.find(name->task) : nullptr;
  if (!task) return;
  const auto* speaker = speaker_of(state_, name->task);
  if (!speaker || AttemptId{speaker->id, speaker->attempt} != attempt || speaker->node != node)
    return;
  auto& job = jobs_[name->task];
  if (!job.costs.emplace(*name, cost).second) return;  // told before
  if (job.costs.size() > kMostCosts) job.costs.erase(job.costs.begin());
  auto& totals = job.totals;
  ++totals.taken;
  totals.stall_ns += cost.stall_ns;
  constexpr double kNsPerHour = 3.6e12;
  if (task->spec.is_gang())
    state_.gangs.stalled(task->id, static_cast<double>(cost.stall_ns) / kNsPerHour);
  const double cost_h =
      static_cast<double>(totals.stall_ns) / static_cast<double>(totals.taken) / kNsPerHour;
  totals.failures_per_h = failures_per_h(*task);
  gang::Costs costs;
  costs.checkpoint_h = cost_h;
  totals.interval_s = gang::checkpoint_interval_h(costs, totals.failures_per_h) * 3600;
  tell(name->task, CheckpointEvery{totals.interval_s, cost_h * 3600, totals.failures_per_h});
  if (jobs_.size() <= kMostJobs) return;
  // The one that was submitted first.
  const auto oldest = jobs_.begin();
  jobs_.erase(oldest->first == name->task ? std::next(oldest) : oldest);
}

void Checkpoints::tick() {
  const int64_t now_ns = state_.clock.boot_ns();
  if (now_ns < next_look_ns_) return;
  next_look_ns_ = now_ns + kLookNs;
  for (const auto& dataset : std::exchange(left_, {})) {
    if (publishing_.erase(dataset)) state_.saving.extract(parse_checkpoint_name(dataset)->task);
    for (const auto& [node, replica] : state_.catalog.stray_states(dataset))
      found(node, dataset, replica);
  }
  std::map<uint64_t, std::vector<CheckpointName>> by_task;
  const auto& all = state_.catalog.all();
  for (auto at = all.lower_bound(std::string(kCheckpointPrefix));
       at != all.end() && at->first.starts_with(kCheckpointPrefix); ++at)
    if (const auto name = parse_checkpoint_name(at->first)) by_task[name->task].push_back(*name);
  told_.forget_if(
      [&](uint64_t task) { return !by_task.contains(task) && !state_.tasks.find(task); });
  for (auto& [task, names] : by_task) {
    std::sort(names.begin(), names.end());
    look_at(task, names);
  }
}

void Checkpoints::look_at(uint64_t task, const std::vector<CheckpointName>& names) {
  const bool goes_on =
      state_.tasks.find(task);  // or its end, which a power cut may undo, is not on disk
  std::set<CheckpointName> safe;
  std::vector<CheckpointName> here, away;
  for (const auto& name : names) {
    auto& entry = *state_.catalog.find(to_string(name));
    // Nobody else may remove what its job may need.
    if (goes_on)
      entry.users.insert(task);
    else
      entry.users.erase(task);
    if (is_safe(entry)) safe.insert(name);
    (can_be_had(state_, entry) ? here : away).push_back(name);
  }
  if (goes_on && !safe.empty()) tell_safe(*safe.rbegin());
  // Which are safe is not known yet.
  if (!awaited_node(state_).empty()) return;
  const size_t most = goes_on ? state_.settings.checkpoints : 1;
  auto surplus = surplus_checkpoints(here, safe, most);
  // Their nodes may never be back, and are no reason to let go of what can be had.
  for (const auto& name : away)
    if (!safe.empty() && name < *safe.rbegin()) surplus.push_back(name);
  // Its job was told that it outlives a node, also where one of those that keep it is away by now.
  if (const auto told = told_.of(task); told && (goes_on || safe.upper_bound(*told) == safe.end()))
    std::erase(surplus, *told);
  for (const auto& name : surplus) {
    const auto dataset = to_string(name);
    state_.catalog.find(dataset)->users.erase(task);
    if (const auto job = jobs_.find(task); job != jobs_.end()) job->second.costs.erase(name);
    datasets_.remove(dataset, [dataset](Status removed) {
      if (!removed) spdlog::warn("{}: {}", dataset, removed.error().message);
    });
  }
}

void Checkpoints::tell_safe(const CheckpointName& name) {
  told_.tell(name, [this, name] {
    if (const auto* entry = state_.catalog.find(to_string(name)))
      tell(name.task, CheckpointSafe{name.iteration, nodes_that_keep(*entry)});
  });
}

void Checkpoints::ask(uint64_t task, const std::string& reason) {
  tell(task, CheckpointNow{reason});
}

void Checkpoints::ask_all_on(const std::string& node, const std::string& reason) {
  const auto* record = state_.registry.find(node);
  if (!record) return;
  std::set<uint64_t> tasks;
  for (const auto& attempt : record->held)
    if (const auto* task = state_.tasks.find(attempt.task))
      tasks.insert(task->rank ? task->rank->gang : task->id);
  for (const uint64_t task : tasks) ask(task, reason);
}

std::vector<ShownCheckpoint> Checkpoints::of(uint64_t task) const {
  auto names = checkpoints_of(state_.catalog, task);
  std::reverse(names.begin(), names.end());
  const auto job = jobs_.find(task);
  std::vector<ShownCheckpoint> shown;
  for (const auto& name : names) {
    const auto& entry = *state_.catalog.find(to_string(name));
    ShownCheckpoint checkpoint{.name = name, .bytes = entry.dataset.bytes, .nodes = {}};
    for (const auto& [node, replica] : entry.replicas)
      if (replica.home) checkpoint.nodes.push_back(node);
    checkpoint.wanted = entry.dataset.replicas;
    checkpoint.stall_ms = checkpoint.copy_ms = {std::nullopt,
                                                "its node has not told, or told it before the "
                                                "coordinator started"};
    if (job != jobs_.end())
      if (const auto cost = job->second.costs.find(name); cost != job->second.costs.end()) {
        checkpoint.stall_ms = in_ms(cost->second.stall_ns);
        checkpoint.copy_ms = in_ms(cost->second.copy_ns);
      }
    shown.push_back(std::move(checkpoint));
  }
  return shown;
}

const CheckpointTotals* Checkpoints::totals(uint64_t task) const {
  const auto job = jobs_.find(task);
  return job == jobs_.end() || job->second.totals.taken == 0 ? nullptr : &job->second.totals;
}

}  // namespace tierpilot
