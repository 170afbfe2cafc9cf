#include "policies/quality/fair_share.h"

#include <algorithm>
#include <numeric>

namespace tierpilot::quality {

std::vector<double> fair_shares(std::span<const JobState> jobs, double total, bool weighted) {
  const auto weight = [&](size_t i) { return weighted ? std::max(jobs[i].weight, 1e-9) : 1.0; };
  std::vector<size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return jobs[a].max_cores / weight(a) < jobs[b].max_cores / weight(b);
  });
  double weights = 0;
  for (size_t i = 0; i < jobs.size(); ++i) weights += weight(i);
  std::vector<double> shares(jobs.size());
  for (const size_t i : order) {
    shares[i] = std::min(jobs[i].max_cores, std::max(total, 0.0) * weight(i) / weights);
    total -= shares[i];
    weights -= weight(i);
  }
  return shares;
}

}  // namespace tierpilot::quality
