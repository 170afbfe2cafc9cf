#include "coordinator/core/gangs/checkpoint_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "coordinator/core/data/replicator.h"

namespace tierpilot {
namespace {

// Of nodes that are away; empty: none of them has it.
std::string may_be_back_with(const ClusterState& state, const Catalog::Entry& entry) {
  for (const auto& [name, replica] : entry.replicas)
    if (const auto* node = state.registry.find(name); node && node->life == NodeLife::kUp)
      return name;
  return awaited_node(state);
}

}  // namespace

std::vector<CheckpointName> checkpoints_of(const Catalog& catalog, uint64_t task) {
  std::vector<CheckpointName> names;
  const auto prefix = fmt::format("{}{}.", kCheckpointPrefix, task);
  const auto& all = catalog.all();
  for (auto at = all.lower_bound(prefix); at != all.end() && at->first.starts_with(prefix); ++at)
    if (const auto name = parse_checkpoint_name(at->first)) names.push_back(*name);
  std::sort(names.begin(), names.end());
  return names;
}

bool can_be_had(const ClusterState& state, const Catalog::Entry& entry) {
  return std::any_of(entry.replicas.begin(), entry.replicas.end(), [&](const auto& replica) {
    const auto* node = state.registry.find(replica.first);
    return node && node->can_be_asked() && (replica.second.in_fast || replica.second.in_slow);
  });
}

bool is_safe(const Catalog::Entry& entry) {
  return nodes_that_keep(entry) >= entry.dataset.replicas;
}

std::string awaited_node(const ClusterState& state) {
  if (state.clock.boot_ns() >= state.joined_by_ns) return {};
  for (const auto& name : state.registry.slots().names())
    if (const auto* node = state.registry.find(name); !node || node->life == NodeLife::kExpected)
      return name;
  return {};
}

std::string newest_checkpoint(const ClusterState& state, uint64_t task) {
  const auto names = checkpoints_of(state.catalog, task);
  for (auto name = names.rbegin(); name != names.rend(); ++name)
    if (can_be_had(state, *state.catalog.find(to_string(*name)))) return to_string(*name);
  return {};
}

std::string awaited_checkpoint(const ClusterState& state, uint64_t task) {
  if (state.saving.contains(task)) return "waiting until a checkpoint of it is written down";
  const auto names = checkpoints_of(state.catalog, task);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    const auto& entry = *state.catalog.find(to_string(*name));
    if (can_be_had(state, entry)) return {};
    if (const auto node = may_be_back_with(state, entry); !node.empty())
      return fmt::format("waiting for node '{}', which may be back with {} before its lease ends",
                         node, to_string(*name));
  }
  return {};
}

std::optional<CheckpointName> last_checkpoint(const ClusterState& state, uint64_t task) {
  const auto names = checkpoints_of(state.catalog, task);
  return names.empty() ? std::nullopt : std::optional(names.back());
}

std::optional<CheckpointName> last_safe_checkpoint(const ClusterState& state, uint64_t task) {
  const auto names = checkpoints_of(state.catalog, task);
  const auto safe = std::find_if(names.rbegin(), names.rend(), [&](const auto& name) {
    return is_safe(*state.catalog.find(to_string(name)));
  });
  return safe == names.rend() ? std::nullopt : std::optional(*safe);
}

std::vector<CheckpointName> surplus_checkpoints(const std::vector<CheckpointName>& all,
                                                const std::set<CheckpointName>& safe, size_t most) {
  std::set<CheckpointName> kept;
  const auto is_safe = [&](const auto& name) { return safe.contains(name); };
  const auto newest_safe = std::find_if(all.rbegin(), all.rend(), is_safe);
  if (newest_safe != all.rend()) kept.insert(*newest_safe);
  // Without it none would ever become safe where jobs save faster than nodes copy.
  if (newest_safe.base() != all.end() && most > 1) kept.insert(*newest_safe.base());
  if (!all.empty()) kept.insert(all.back());
  for (auto name = all.rbegin(); name != all.rend() && kept.size() < most; ++name)
    kept.insert(*name);
  std::vector<CheckpointName> surplus;
  for (const auto& name : all)
    if (!kept.contains(name)) surplus.push_back(name);
  return surplus;
}

}  // namespace tierpilot
