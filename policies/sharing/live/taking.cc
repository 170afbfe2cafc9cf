#include "policies/sharing/live/taking.h"

#include <algorithm>
#include <tuple>

namespace tierpilot::sharing {
namespace {

// What it goes on with: who needs less than the least is left that.
uint32_t lendable_of(const LiveJob& job, uint32_t least_milli) {
  return job.share.milli - std::min({job.share.milli, least_milli, job.usable_milli()});
}

std::vector<LiveJob> cheapest_first(const LiveUnit& unit) {
  std::vector<LiveJob> jobs;
  for (const auto& job : unit.jobs)
    if (job.job_class == JobClass::kBestEffort && job.share.milli > 0) jobs.push_back(job);
  std::stable_sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    const auto cost = [](const LiveJob& job) {
      return std::tuple(!job.takes_checkpoints,
                        job.takes_checkpoints ? job.unsaved_s : job.elapsed_s);
    };
    return cost(a) < cost(b);
  });
  return jobs;
}

}  // namespace

Taken take_from_best_effort(const LiveUnit& unit, uint32_t wanted_milli, uint32_t least_milli) {
  Taken taken;
  const auto jobs = cheapest_first(unit);
  uint64_t lendable = 0;
  if (least_milli > 0)
    for (const auto& job : jobs) lendable += lendable_of(job, least_milli);
  // In proportion to what each could lend, while that is enough.
  if (lendable >= wanted_milli && wanted_milli > 0) {
    for (const auto& job : jobs) {
      const uint64_t lent = lendable_of(job, least_milli);
      const auto given = std::min<uint64_t>(
          {(lent * wanted_milli + lendable - 1) / lendable, lent, wanted_milli - taken.milli});
      if (given == 0) continue;
      taken.milli += static_cast<uint32_t>(given);
      taken.left.emplace_back(job.id, job.share.milli - static_cast<uint32_t>(given));
    }
    return taken;
  }
  for (const auto& job : jobs) {
    if (taken.milli >= wanted_milli) break;
    taken.milli += job.share.milli;
    taken.preempted.push_back(job.id);
  }
  return taken;
}

std::vector<uint64_t> who_frees_memory(const LiveUnit& unit, uint64_t wanted_bytes) {
  uint64_t free_bytes = unit.free().memory_bytes;
  std::vector<uint64_t> ended;
  for (const auto& job : cheapest_first(unit)) {
    if (free_bytes >= wanted_bytes) break;
    if (job.share.memory_bytes == 0) continue;
    free_bytes += job.share.memory_bytes;
    ended.push_back(job.id);
  }
  return free_bytes >= wanted_bytes ? ended : std::vector<uint64_t>{};
}

}  // namespace tierpilot::sharing
