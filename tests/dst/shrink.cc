#include "tests/dst/shrink.h"

#include <algorithm>
#include <cstddef>

namespace tierpilot::dst {

Plan shrink(Plan plan, const std::function<bool(const Plan&)>& fails, int most_runs) {
  for (size_t chunk = std::max<size_t>(plan.size() / 2, 1); chunk > 0;) {
    bool shorter = false;
    for (size_t at = 0; at < plan.size() && most_runs > 0;) {
      Plan without = plan;
      const auto begin = without.begin() + static_cast<ptrdiff_t>(at);
      without.erase(begin, begin + static_cast<ptrdiff_t>(std::min(chunk, plan.size() - at)));
      --most_runs;
      if (fails(without)) {
        plan = std::move(without);
        shorter = true;
      } else {
        at += chunk;
      }
    }
    if (most_runs <= 0 || (chunk == 1 && !shorter)) break;
    if (chunk > 1) chunk /= 2;
  }
  return plan;
}

}  // namespace tierpilot::dst
