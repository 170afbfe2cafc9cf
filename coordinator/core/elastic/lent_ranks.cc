#include "coordinator/core/elastic/lent_ranks.h"

#include <algorithm>

#include "coordinator/core/gangs/gang_plan.h"

namespace tierpilot {
namespace {

constexpr size_t kMostLookedAt = 256;  // of the queue

// GPUs, or units of nodes' CPUs.
uint64_t need_of(const TaskSpec& spec, bool of_gpus) {
  const uint64_t each = of_gpus ? spec.gang.gpus_per_rank : spec.units;
  return spec.is_gang() ? spec.gang.ranks * each : each;
}

}  // namespace

uint32_t lent_ranks_waited_for(const ClusterState& state, const Task& gang) {
  const auto& spec = gang.spec;
  const auto width = state.tasks.ranks_tried(gang).size();
  const bool of_gpus = spec.gang.engine == Engine::kGpu;
  const uint64_t each = of_gpus ? spec.gang.gpus_per_rank : spec.units;
  if (width <= spec.gang.ranks || each == 0) return 0;
  const auto lent = static_cast<uint32_t>(width - spec.gang.ranks);
  const uint64_t idle = idle_ranks(state, gang) * each;
  uint64_t waited_for = 0;
  size_t looked_at = 0;
  for (const auto& [place_s, id] : state.tasks.queue()) {
    if (++looked_at > kMostLookedAt) break;
    const auto* task = state.tasks.find(id);
    const uint64_t need = task ? need_of(task->spec, of_gpus) : 0;
    if (need <= idle + lent * each) waited_for += need;
  }
  const uint64_t missing = waited_for - std::min(waited_for, idle);
  return static_cast<uint32_t>(std::min<uint64_t>(lent, (missing + each - 1) / each));
}

}  // namespace tierpilot
