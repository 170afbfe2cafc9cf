// What must hold of jobs that save their work.
#include <fmt/format.h>

#include <algorithm>

#include "tests/dst/world.h"

namespace tierpilot::dst {

// Bytes of it that can be read.
bool World::is_held_well(const CheckpointName& name, const Node& node) const {
  const Digest content = judge_.saved_work().content(name);
  const auto found = node.shelf().find({to_string(name), 1, checksum(content)});
  return found != node.shelf().end() &&
         (found->second.fast || (found->second.slow && !found->second.rotten));
}

// Its node has told of it.
bool World::is_known(const std::string& node, const std::string& dataset) const {
  const auto& catalog = coordinator_->core().state.catalog;
  const auto* entry = catalog.find(dataset);
  return entry ? entry->replicas.contains(node) : catalog.strays(dataset).contains(node);
}

// One that its job was told is safe is waited for, where a node may be back with it.
bool World::may_be_back(const CheckpointName& name, const Node& node) const {
  const auto& state = coordinator_->core().state;
  if (!judge_.saved_work().is_told_safe(name) || !state.catalog.find(to_string(name))) return false;
  const auto* record = state.registry.find(node.name());
  if (record && record->life == NodeLife::kUp) return true;
  return coordinator_->awaits_nodes() && (!record || record->life == NodeLife::kExpected);
}

// The newest one that a try must not begin without.
std::optional<CheckpointName> World::least_of(const Task& job, std::string& why) const {
  const auto names = judge_.saved_work().of(job.id);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (name->attempt >= job.attempt || !judge_.saved_work().is_told(*name)) continue;
    for (const auto& node : nodes_) {
      const auto* record = coordinator_->core().state.registry.find(node->name());
      const bool can_be_had =
          record && record->can_be_asked() && is_known(node->name(), to_string(*name));
      if (!is_held_well(*name, *node) || (!can_be_had && !may_be_back(*name, *node))) continue;
      why = fmt::format("{} {}", can_be_had ? "can be had from" : "is safe, also on", node->name());
      return *name;
    }
  }
  return std::nullopt;
}

// What a try could have begun from when it was placed.
void World::check_tries() {
  if (!coordinator_->up()) return;
  const auto& tasks = coordinator_->core().state.tasks;
  for (const auto& [id, spec] : judge_.tasks()) {
    if (saves_every_ms(spec.argv) == 0) continue;
    const auto* job = tasks.find(id);
    const bool is_placed =
        job && (job->state == TaskState::kAssigned || job->state == TaskState::kRunning);
    const uint32_t now = is_placed ? job->attempt : 0;
    if (std::exchange(tried_[id], now) == now || !is_placed) continue;
    std::string why;
    const auto least = least_of(*job, why);
    judge_.saved_work().placed(id, now, least, why);
  }
}

size_t World::keepers_of(const CheckpointName& name) const {
  return static_cast<size_t>(std::count_if(
      nodes_.begin(), nodes_.end(), [&](const auto& node) { return is_held_well(name, *node); }));
}

// What a job was told is safe is there as long as the job may need it, or a later one is as safe.
void World::check_saved() {
  if (!coordinator_->up()) return;
  const auto& catalog = coordinator_->core().state.catalog;
  const auto& tasks = coordinator_->core().state.tasks;
  for (const auto& [id, spec] : judge_.tasks()) {
    // One that ended, and is on disk as such, may not have been told of yet.
    if (saves_every_ms(spec.argv) == 0 || judge_.has_ended(id) || !tasks.find(id)) continue;
    const auto newest = judge_.saved_work().newest_safe(id);
    if (!newest || keepers_of(*newest) > 0) continue;
    const auto names = judge_.saved_work().of(id);
    const bool is_replaced = std::any_of(names.begin(), names.end(), [&](const auto& name) {
      const auto* entry = catalog.told(to_string(name));
      return *newest < name && entry && keepers_of(name) >= entry->dataset.replicas;
    });
    if (is_replaced) continue;
    std::string later;
    for (const auto& name : names)
      if (*newest < name)
        if (const auto* entry = catalog.told(to_string(name)))
          later += fmt::format(", {} is on {} of {}", to_string(name), keepers_of(name),
                               entry->dataset.replicas);
    judge_.violated("lost-checkpoint", fmt::format("{} was told to be safe, and no node has it{}",
                                                   to_string(*newest), later));
  }
}

}  // namespace tierpilot::dst
