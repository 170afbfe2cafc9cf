#include "coordinator/core/decisions/assignment.h"

#include <algorithm>
#include <utility>

#include "policies/scheduling/source_rank.h"

namespace tierpilot {
namespace {

// Where the node `reader` reads the dataset for the task, the best address first.
std::vector<std::string> sources_of(const ClusterState& state, const Catalog::Entry& entry,
                                    uint64_t task, const std::string& reader) {
  std::vector<std::pair<SourceRank, std::string>> ranked;
  for (const auto& [name, replica] : entry.replicas) {
    const auto* holder = state.registry.find(name);
    if (name != reader && holder && holder->can_be_asked())
      ranked.emplace_back(source_rank(task, holder->slot, replica.in_fast),
                          holder->facts.data_address);
  }
  std::sort(ranked.begin(), ranked.end());
  ranked.resize(std::min(ranked.size(), kMostSources));
  std::vector<std::string> addresses;
  for (auto& [rank, address] : ranked) addresses.push_back(std::move(address));
  return addresses;
}

}  // namespace

Assignment make_assignment(const ClusterState& state, Task& task, const std::string& node,
                           const std::string& checkpoint) {
  Assignment assignment{{task.id, task.attempt}, task.spec, {}, state.reckoning, task.place_s, {}};
  assignment.user = task.user;
  task.data_versions.clear();
  for (const auto& use : task.spec.datasets) {
    const auto& entry = *state.catalog.find(use.dataset);
    task.data_versions[use.dataset] = entry.dataset.version;
    DatasetNeed need{use.dataset, entry.dataset.version, entry.dataset.bytes, use.write, {}};
    need.sources = sources_of(state, entry, task.id, node);
    need.digest = entry.dataset.digest;
    assignment.datasets.push_back(std::move(need));
  }
  const auto* begin = checkpoint.empty() ? nullptr : state.catalog.find(checkpoint);
  if (!begin) return assignment;
  const auto& dataset = begin->dataset;
  task.data_versions[checkpoint] = dataset.version;
  assignment.datasets.push_back({checkpoint, dataset.version, dataset.bytes, false,
                                 sources_of(state, *begin, task.id, node), dataset.digest, true});
  return assignment;
}

}  // namespace tierpilot
