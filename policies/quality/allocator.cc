#include "policies/quality/allocator.h"

#include <array>
#include <string>

#include "policies/quality/greedy_allocators.h"
#include "policies/quality/guarded_allocator.h"
#include "policies/quality/quality_allocator.h"

namespace tierpilot::quality {
namespace {

constexpr std::array<std::string_view, 6> kNames{"fair",    "fair-weighted", "quality-published",
                                                 "quality", "srtf",          "max-throughput"};

}  // namespace

std::span<const std::string_view> allocator_names() {
  return kNames;
}

Result<std::unique_ptr<Allocator>> make_allocator(std::string_view name) {
  constexpr std::string_view kGuarded = "guarded:";
  if (name.starts_with(kGuarded)) {
    auto guarded = make_allocator(name.substr(kGuarded.size()));
    if (!guarded) return guarded;
    return make_guarded(std::move(*guarded));
  }
  if (name == "fair") return make_fair(false);
  if (name == "fair-weighted") return make_fair(true);
  if (name == "quality-published") return make_quality_published();
  if (name == "quality") return make_quality();
  if (name == "srtf") return make_srtf();
  if (name == "max-throughput") return make_max_throughput();
  std::string known;
  for (const auto each : kNames) known.append(known.empty() ? "" : ", ").append(each);
  return fail(ErrorCode::kNotFound,
              "allocator '" + std::string(name) + "' is not known; there are " + known);
}

double iterations_in(const JobState& job, double seconds, double cores) {
  if (job.one_core_s <= 0) return 0;
  const double speed = job.throughput ? job.throughput->speed(cores) : cores;
  return seconds * speed / job.one_core_s;
}

}  // namespace tierpilot::quality
