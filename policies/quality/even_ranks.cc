#include "policies/quality/even_ranks.h"

#include <algorithm>
#include <map>

#include "policies/quality/fair_share.h"

namespace tierpilot::quality {
namespace {

struct Parts {
  size_t nodes = 0;
  double least_cores = 0;  // of one rank
};

std::map<uint64_t, Parts> parts_of(std::span<const NodeShares> nodes) {
  std::map<uint64_t, Parts> found;
  for (const auto& node : nodes)
    for (size_t i = 0; i < node.jobs.size(); ++i) {
      auto& parts = found[node.jobs[i].id];
      const double of_one = node.given[i] / node.jobs[i].ranks_here;
      parts.least_cores = parts.nodes++ == 0 ? of_one : std::min(parts.least_cores, of_one);
    }
  return found;
}

}  // namespace

void even_out(std::span<NodeShares> nodes) {
  const auto all = parts_of(nodes);
  for (auto& [jobs, given] : nodes) {
    double freed = 0;
    std::vector<JobState> room(jobs);
    for (size_t i = 0; i < jobs.size(); ++i) {
      const auto& parts = all.at(jobs[i].id);
      if (parts.nodes > 1) {
        const double level = std::max(parts.least_cores * jobs[i].ranks_here, jobs[i].min_cores);
        freed += std::max(0.0, given[i] - level);
        given[i] = std::min(given[i], level);
      }
      room[i].max_cores = parts.nodes > 1 ? 0 : std::max(0.0, jobs[i].max_cores - given[i]);
    }
    if (freed <= 0) continue;
    const auto more = fair_shares(room, freed, true);
    for (size_t i = 0; i < given.size(); ++i) given[i] += more[i];
  }
}

}  // namespace tierpilot::quality
