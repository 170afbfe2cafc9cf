#include "policies/quality/allocator.h"

#include <string>

#include "policies/quality/greedy_allocators.h"
#include "policies/quality/guarded_allocator.h"
#include "policies/quality/quality_allocator.h"

namespace tierpilot::quality {

const ModuleList<AllocatorModule>& allocators() {
  using Nothing = std::monostate;
  static const ModuleList<AllocatorModule> kAllocators(
      "allocator",
      {{{"fair", "as much for each"}, [](Nothing) { return make_fair(false); }},
       {{"fair-weighted", "by weight"}, [](Nothing) { return make_fair(true); }},
       {{"quality-published", "the most loss that a fit as published foretells"},
        [](Nothing) { return make_quality_published(); }},
       {{"quality", "the most loss that is foretold, weighed by what is known of it"},
        [](Nothing) { return make_quality(); }},
       {{"srtf", "the job that ends first"}, [](Nothing) { return make_srtf(); }},
       {{"max-throughput", "the most iterations"}, [](Nothing) { return make_max_throughput(); }}});
  return kAllocators;
}

Result<std::unique_ptr<Allocator>> make_allocator(std::string_view name) {
  constexpr std::string_view kGuarded = "guarded:";
  if (!name.starts_with(kGuarded)) return allocators().make(name, std::monostate());
  auto guarded = make_allocator(name.substr(kGuarded.size()));
  if (!guarded) return guarded;
  return make_guarded(std::move(*guarded));
}

double speed_on(const JobState& job, double cores) {
  const double of_one = cores / job.ranks_here;
  return job.throughput ? job.throughput->speed(of_one) : of_one;
}

double iterations_in(const JobState& job, double seconds, double cores) {
  return job.one_core_s > 0 ? seconds * speed_on(job, cores) / job.one_core_s : 0;
}

}  // namespace tierpilot::quality
