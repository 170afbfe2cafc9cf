#include "policies/sharing/live/live_unit.h"

#include <algorithm>

namespace tierpilot::sharing {

Share LiveUnit::free() const {
  Share left = whole;
  for (const auto& job : jobs) {
    left.milli -= std::min(left.milli, job.share.milli);
    left.memory_bytes -= std::min(left.memory_bytes, job.share.memory_bytes);
  }
  return left;
}

uint32_t LiveUnit::best_effort_milli() const {
  uint32_t milli = 0;
  for (const auto& job : jobs)
    if (job.job_class == JobClass::kBestEffort) milli += job.share.milli;
  return milli;
}

uint32_t LiveUnit::hardly_used_milli() const {
  constexpr uint32_t kHardly = 20;  // all together: well within the margin of a promise
  uint32_t milli = 0;
  for (const auto& job : jobs)
    if (job.job_class == JobClass::kBestEffort && milli + job.usable_milli() <= kHardly)
      milli += std::min(job.usable_milli(), job.share.milli);
  return milli;
}

}  // namespace tierpilot::sharing
