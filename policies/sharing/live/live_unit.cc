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

}  // namespace tierpilot::sharing
